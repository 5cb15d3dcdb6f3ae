package manager

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/manager/pools"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

// board holds the verdict machine and what it decided last. Watches tell it what they see; it decides on every tick of
// its clock, also in a replica that does not lead.
type board struct {
	clock clock.WithTicker
	tick  time.Duration

	mu       sync.Mutex
	machine  *verdict.Machine
	decision verdict.Decision
	changed  func(node string) // nil while nobody acts
	decided  chan struct{}     // closed and replaced at each decision
}

func newBoard(c clock.WithTicker, config verdict.Config) *board {
	return &board{clock: c, tick: config.Grace / 50, machine: verdict.New(config), decided: make(chan struct{})}
}

// tell lets the machine know something.
func (b *board) tell(do func(now time.Time, m *verdict.Machine)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do(b.clock.Now(), b.machine)
}

// Start implements manager.Runnable: it decides until the context ends.
func (b *board) Start(ctx context.Context) error {
	ticker := b.clock.NewTicker(b.tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			b.decide()
		case <-ctx.Done():
			return nil
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that only listens knows who lives when it
// takes over.
func (b *board) NeedLeaderElection() bool { return false }

// decide steps the machine and names the nodes about which something else is known than before.
func (b *board) decide() {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.decision
	b.decision = b.machine.Step(b.clock.Now())
	if b.changed != nil {
		for name, v := range b.decision.Nodes {
			if v != before.Nodes[name] || b.decision.Pools[v.Pool] != before.Pools[v.Pool] {
				b.changed(name)
			}
		}
	}
	close(b.decided)
	b.decided = make(chan struct{})
}

// subscribe calls changed, which must not block, for each node whose verdict changes, and now for all.
func (b *board) subscribe(changed func(node string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = changed
	for name := range b.decision.Nodes {
		changed(name)
	}
}

// read returns the last decision and a channel that is closed by the next one.
func (b *board) read() (verdict.Decision, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.decision, b.decided
}

// seen is what is known of the nodes of a pool.
func (b *board) seen(pool string) pools.Seen {
	d, _ := b.read()
	return seenIn(d, pool)
}

func seenIn(d verdict.Decision, pool string) pools.Seen {
	v, t := d.Pools[pool], d.Tally[pool]
	s := pools.Seen{Heard: t.Heard, CutOff: t.Delegated, Silent: v.Silent, Unsure: t.Unknown > 0}
	if v.Silent {
		s.Since = v.Since
	}
	return s
}

// follow calls changed for each pool of whose nodes something else is known, until the context ends.
func (b *board) follow(ctx context.Context, changed func(pool string)) {
	was := map[string]pools.Seen{}
	for {
		d, next := b.read()
		for _, pool := range news(was, d) {
			changed(pool)
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// news names the pools of which a decision says something else than what was, and notes what it says.
func news(was map[string]pools.Seen, d verdict.Decision) (all []string) {
	for pool := range d.Pools {
		s := seenIn(d, pool)
		if s.Unsure { // no status has these numbers yet, and each node that is heard changes them
			s.Heard, s.CutOff = 0, min(s.CutOff, 1)
		}
		if before, known := was[pool]; !known || before != s {
			all = append(all, pool)
		}
		was[pool] = s
	}
	for pool := range was {
		if _, there := d.Pools[pool]; !there {
			all = append(all, pool)
			delete(was, pool)
		}
	}
	return all
}
