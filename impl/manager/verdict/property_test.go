package verdict

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 0, "of the first random history; 0: one of this run")

// histories is how many random ones are tried.
const histories = 100

// TestHistories holds random histories of nodes, heartbeats, policies and changes of leader to what the package
// promises. What is true is worked out again at each second from the whole history, without any of the machine's
// shortcuts.
func TestHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64() //nolint:gosec // a seed
	}
	for i := range uint64(histories) {
		h := &history{random: rand.New(rand.NewPCG(first+i, 0))} //nolint:gosec // not for secrets
		if err := h.run(); err != nil {
			t.Fatalf("go test ./impl/manager/verdict -run TestHistories -args -seed %d\n%v\n%s", first+i, err,
				strings.Join(h.log, "\n"))
		}
	}
}

const (
	seconds  = 600
	graceIn  = 50
	silentIn = graceIn / 2
)

// history drives one machine and remembers, by second, what nobody else does.
type history struct {
	random *rand.Rand
	m      *Machine
	now    int
	log    []string

	pools   map[string][]string // pool -> nodes
	heard   map[string]int      // node -> second of its last heartbeat in this process
	speaks  map[string]bool
	since   map[string]int // pool -> second since which it is heard without a pause
	started int            // second at which this process began
	policy  Policy
	last    Decision
	before  map[string]Verdict
}

func (h *history) at(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf("%d %s", h.now, fmt.Sprintf(format, args...)))
}

func (h *history) run() error {
	h.pools, h.speaks, h.since = map[string][]string{}, map[string]bool{}, map[string]int{}
	for p := range 1 + h.random.IntN(3) {
		for n := range 1 + h.random.IntN(4) {
			name := fmt.Sprintf("p%d-n%d", p, n)
			h.pools[fmt.Sprint("p", p)] = append(h.pools[fmt.Sprint("p", p)], name)
			h.speaks[name] = true
		}
	}
	h.begin(Record{})
	for h.now = 0; h.now < seconds; h.now++ {
		h.happen()
		for _, node := range slices.Sorted(maps.Keys(h.speaks)) {
			if h.random.IntN(10) == 0 && h.speaks[node] {
				h.heard[node] = h.now
				h.m.Heartbeat(h.at(h.now), node, h.random.IntN(2) == 0, true)
			}
		}
		h.last = h.m.Step(h.at(h.now))
		for pool, nodes := range h.pools {
			if !h.poolHeard(nodes) {
				h.since[pool] = h.now + 1
			}
			for _, n := range nodes {
				if err := h.judge(pool, nodes, n); err != nil {
					return fmt.Errorf("second %d, node %s: %w: %+v", h.now, n, err, h.last.Nodes[n])
				}
			}
		}
		h.before = h.last.Nodes
	}
	return nil
}

// begin is a process that starts and leads, with what another one left.
func (h *history) begin(left Record) {
	h.m, h.heard, h.started, h.before = New(Config{Grace: graceIn * time.Second}), map[string]int{}, h.now, nil
	h.m.SetPolicies(h.policy, nil)
	for pool, nodes := range h.pools {
		for _, n := range nodes {
			h.m.SetNode(h.at(h.now), n, Facts{Pool: pool})
		}
	}
	h.m.Lead(h.at(h.now), left)
}

// happen lets nodes and pools fall silent and speak again, processes end, and policies change.
func (h *history) happen() {
	switch h.random.IntN(120) {
	case 0:
		h.note("restart")
		h.begin(h.last.Record)
	case 1:
		h.policy = Policy{Evict: h.random.IntN(2) == 0, After: time.Duration(h.random.IntN(120)) * time.Second}
		h.note("policy %+v", h.policy)
		h.m.SetPolicies(h.policy, nil)
	case 2, 3, 4:
		pool, speaks := pick(h, h.pools), h.random.IntN(2) == 0
		h.note("pool %s speaks: %v", pool, speaks)
		for _, n := range h.pools[pool] {
			h.speaks[n] = speaks
		}
	case 5, 6, 7:
		n := pick(h, h.speaks)
		h.speaks[n] = h.random.IntN(2) == 0
		h.note("node %s speaks: %v", n, h.speaks[n])
	case 8:
		for _, n := range h.last.Record.Owed {
			h.m.Done(n)
		}
	}
}

// pick chooses a key, the same one for the same seed.
func pick[V any](h *history, m map[string]V) string {
	return slices.Sorted(maps.Keys(m))[h.random.IntN(len(m))]
}

func (h *history) silence(node string) int {
	if at, ok := h.heard[node]; ok {
		return h.now - at
	}
	return h.now - h.started
}

func (h *history) poolHeard(nodes []string) bool {
	return slices.ContainsFunc(nodes, func(n string) bool {
		at, ok := h.heard[n]
		return ok && h.now-at < silentIn
	})
}

func (h *history) judge(pool string, nodes []string, name string) error {
	v, before := h.last.Nodes[name], h.before[name]
	_, heard := h.heard[name]
	poolHeard := h.poolHeard(nodes)
	p := h.last.Pools[pool]
	switch alive := heard && h.silence(name) < graceIn; {
	case v.State.Alive() != alive:
		return fmt.Errorf("alive should be %v", alive)
	case p.Silent == poolHeard:
		return fmt.Errorf("the pool should be heard: %v", poolHeard)
	case v.Kept && v.Dead, v.Kept && v.Owed:
		return errors.New("a node is kept, or dead, or released")
	case v.Dead && alive && h.silence(name) == 0:
		return errors.New("what was heard just now is not dead")
	case v.Dead && !before.Dead && h.before != nil && !poolHeard:
		return errors.New("nobody dies while its whole pool is silent")
	case v.Dead && !before.Dead && h.before != nil && h.silence(name) < graceIn:
		return errors.New("nobody dies before a grace period")
	case v.Dead && !before.Dead && h.before != nil && h.now-h.since[pool] < graceIn:
		return errors.New("nobody dies before it had a grace period since its pool was heard again")
	case !poolHeard && !v.Kept && !v.Dead && !h.policy.Evict:
		return errors.New("the pool is silent, its policy keeps, and the node is not kept")
	case v.Kept && poolHeard && alive:
		return errors.New("the cloud sees the node, and it is kept")
	case p.GivenUp && !h.policy.Evict:
		return errors.New("a pool is given up that should be kept")
	case before.Kept && !v.Kept && !alive && !v.Owed:
		return errors.New("a node that is not kept any more is not released")
	case poolHeard && !v.Dead && h.now-max(h.since[pool], h.now-h.silence(name)) > graceIn+silentIn:
		return errors.New("its peers are heard all the time, and it is not: it is dead")
	}
	return nil
}
