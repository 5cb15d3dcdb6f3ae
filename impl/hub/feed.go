package hub

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
)

const (
	firstPushRetry = 100 * time.Millisecond
	maxPushRetry   = 5 * time.Second
	pushedLook     = 250 * time.Millisecond // how often the coordinator is asked what it has, until it has all
	pushedAgain    = 2 * time.Second        // and after that
)

// feed is what a leader does: it pushes each relay to the coordinator, and watches whether what the cloud showed arrived.
type feed struct {
	discovery   *discovery
	lead        func(bool) // told when this hub begins and ends to lead
	relays      []*relay.Relay
	overrule    func(history uint64) // the cloud is in this one
	coordinator *coordinator
	maxAge      time.Duration // of the last sign of a stream from the cloud
	refused     chan<- role.Refusal
	changed     func()
	clock       clock.WithTicker
	logger      *slog.Logger
	metrics     *metrics

	terms chan contract.Term // zero: stop

	mu     sync.Mutex
	pushed time.Time // when the coordinator was last seen to have what the relays had shortly before; zero: not under this term
}

// start pushes under a term from now on; stop ends that. They never block for long: run takes them at once.
func (f *feed) start(t contract.Term) { f.terms <- t }

func (f *feed) stop() { f.terms <- contract.Term{} }

// run does what start and stop say until ctx ends.
func (f *feed) run(ctx context.Context) error {
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case t := <-f.terms:
			end()
			end = func() {}
			if t == (contract.Term{}) {
				continue
			}
			pushing, cancel := context.WithCancel(ctx)
			var g errgroup.Group
			for _, r := range f.relays {
				g.Go(func() error { f.push(pushing, r, t); return nil })
			}
			g.Go(func() error { f.watch(pushing); return nil })
			g.Go(func() error { f.pulse(pushing, t); return nil })
			g.Go(func() error { f.discovery.keep(pushing, t); return nil })
			f.lead(true)
			end = func() {
				f.lead(false)
				cancel()
				_ = g.Wait()
				f.arrived(time.Time{})
			}
		}
	}
}

// pulse shows the coordinator that the leader lives, until ctx ends.
func (f *feed) pulse(ctx context.Context, t contract.Term) {
	for ctx.Err() == nil {
		if err := f.coordinator.pulse(ctx, t, f.clock); err != nil && ctx.Err() == nil {
			f.logger.Debug("the pulse broke; trying again", "term", t.String(), "err", err)
		}
		sleep(ctx, f.clock, firstPushRetry/2+rand.N(firstPushRetry))
	}
}

// push keeps one relay pushed until ctx ends or the coordinator refuses the term.
func (f *feed) push(ctx context.Context, r *relay.Relay, t contract.Term) {
	name := r.Resource().String()
	for wait := firstPushRetry; ctx.Err() == nil; {
		if err := r.WaitSign(ctx); err != nil { // nothing to push before the first list, and what a disk held is not news
			return
		}
		began := f.clock.Now()
		to, using, cancel := f.coordinator.with(ctx)
		err := source.Push(using, source.PushConfig{Relay: r, Coordinator: to.upstream, Term: t, Logger: f.logger})
		left := using.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return
		}
		if left { // for another replica
			wait = firstPushRetry
			continue
		}
		var refusal *source.RefusedError
		if errors.As(err, &refusal) {
			f.metrics.feeds.WithLabelValues(name, "refused").Inc()
			f.logger.Warn("the coordinator refuses this leader", "resource", name, "term", t.String(), "err", err)
			select {
			case f.refused <- role.Refusal{Term: t, Lasting: refusal.Code == http.StatusForbidden}:
			case <-ctx.Done():
			}
			return
		}
		var later *source.LaterError
		if errors.As(err, &later) { // this hub was away when the cloud was restored: the cloud itself has the word
			f.overrule(later.Number)
		}
		f.metrics.feeds.WithLabelValues(name, "broken").Inc()
		f.logger.Info("the feed of the coordinator broke; trying again", "resource", name, "err", err)
		if f.clock.Since(began) > maxPushRetry {
			wait = firstPushRetry
		}
		wait = f.rest(ctx, wait)
	}
}

// rest waits before another try and returns how long to wait before the next one. A replica that was not tried yet is tried at once.
func (f *feed) rest(ctx context.Context, wait time.Duration) time.Duration {
	_, using, cancel := f.coordinator.with(ctx)
	defer cancel()
	sleep(using, f.clock, wait/2+rand.N(wait/2+1))
	if using.Err() != nil {
		return firstPushRetry
	}
	return min(2*wait, maxPushRetry)
}

// watch asks the coordinator what it has. Only its own word counts: a stream that takes bytes may be a black hole.
func (f *feed) watch(ctx context.Context) {
	for ctx.Err() == nil {
		asked := f.clock.Now()
		want := make(map[string]relay.Status, len(f.relays))
		for _, r := range f.relays {
			want[r.Resource().String()] = r.Status()
		}
		sleep(ctx, f.clock, pushedLook)
		limit, cancel := context.WithTimeout(ctx, pushedAgain)
		s, err := f.coordinator.status(limit)
		cancel()
		if err != nil || !s.has(want) {
			continue
		}
		f.arrived(asked)
		f.changed()
		sleep(ctx, f.clock, pushedAgain)
	}
}

// has tells whether a coordinator reached all versions.
func (s *poolStatus) has(want map[string]relay.Status) bool {
	n := 0
	for _, r := range s.Resources {
		if w, ok := want[r.Resource]; ok && w.Synced && r.Synced && r.History == w.History.Number && r.Version >= w.Version {
			n++
		}
	}
	return n == len(want)
}

func (f *feed) arrived(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pushed = at
}

// fresh tells whether the leader's streams from the cloud are fresh, and what they brought arrived at the coordinator.
func (f *feed) fresh(now time.Time) bool {
	f.mu.Lock()
	pushed := f.pushed
	f.mu.Unlock()
	if pushed.IsZero() || now.Sub(pushed) > f.maxAge {
		return false
	}
	for _, r := range f.relays {
		if s := r.Status(); !s.Fresh(now, f.maxAge) {
			return false
		}
	}
	return true
}

func sleep(ctx context.Context, c clock.Clock, d time.Duration) {
	if d <= 0 {
		return
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
	case <-ctx.Done():
	}
}
