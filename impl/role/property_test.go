package role

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

var (
	seed      = flag.Uint64("seed", 0, "run the one schedule of this seed")
	schedules = flag.Int("schedules", 400, "how many random schedules to run")
)

// TestSafety runs random schedules of faults and checks, after every step of every machine, that no two machines that
// run believe to lead in one life of the coordinator, that a leader reaches the cloud, that terms only grow, that at
// most one feed is in effect, and that nobody leaves the pool's cache for the cloud before its grace period is over. At
// the end everything is healed, and exactly one machine must lead.
func TestSafety(t *testing.T) {
	if *seed != 0 {
		schedule(t, *seed)
		return
	}
	for range *schedules {
		s := rand.Uint64()
		if schedule(t, s); t.Failed() {
			t.Fatalf("repeat with: go test ./impl/role -run TestSafety -seed %d -v", s)
		}
	}
}

func schedule(t *testing.T, number uint64) {
	t.Helper()
	rng, replay := rand.New(rand.NewPCG(number, 1)), *seed != 0
	names := []string{"a", "b", "c", "d"}[:2+rng.IntN(3)]
	grace := time.Duration(rng.Int64N(int64(20 * time.Second)))
	p := newPool(t, Config{Grace: grace, Spread: time.Duration(rng.Int64N(int64(20 * time.Second)))}, names...)
	p.watching = rng.IntN(2) == 0
	slow := rng.IntN(2) == 0
	p.latency = func() time.Duration {
		if slow && rng.IntN(10) == 0 {
			return time.Duration(rng.Int64N(int64(6 * time.Second)))
		}
		return time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
	}
	fail := func(h *hub, format string, args ...any) {
		t.Errorf("seed %d, %v, hub %s: "+format, append([]any{number, p.Now(), h.name}, args...)...)
	}
	newest := map[string]contract.Term{}
	type at struct {
		source Source
		fine   time.Duration // when there was last no reason to leave the pool's cache
	}
	last := map[*hub]at{}
	p.check = func(h *hub) {
		s := h.out.Snapshot
		before := last[h]
		if before.source == Coordinator && s.Source == Cloud && s.Role != Leader && p.Now() < before.fine+grace {
			fail(h, "goes to the cloud %v after the pool's cache was lost, grace is %v", p.Now()-before.fine, grace)
		}
		if s.Source != Coordinator || s.Ready || !h.cloud {
			before.fine = p.Now()
		}
		last[h] = at{s.Source, before.fine}
		leads := s.Role == Leader
		if leads != (h.term != contract.Term{}) || leads && (h.term != s.Term) {
			fail(h, "role %v, term %v, feeds under %v", s.Role, s.Term, h.term)
		}
		if !leads {
			return
		}
		if !h.cloud || !h.coordinator {
			fail(h, "leads with cloud=%t coordinator=%t", h.cloud, h.coordinator)
		}
		if old := newest[h.name]; old.Incarnation == s.Term.Incarnation && old.Version > s.Term.Version {
			fail(h, "term went back from %v to %v", old, s.Term)
		}
		newest[h.name] = s.Term
		if s.Term.Version <= p.freed[s.Term.Incarnation] {
			return // it has not heard yet that the coordinator took the Lease away; its feed is refused
		}
		if holder := p.leases[ReadElection].Holder; s.Term.Incarnation == strconv.Itoa(p.incarnation) &&
			holder != h.identity() {
			fail(h, "leads under %v, but %q holds the lease", s.Term, holder)
		}
		for _, other := range p.hubs {
			o := other.out.Snapshot
			if o.Term.Version <= p.freed[o.Term.Incarnation] {
				continue
			}
			if other != h && other.running && !other.frozen && o.Role == Leader && o.Term.Incarnation == s.Term.Incarnation {
				fail(h, "leads under %v beside %s under %v", s.Term, other.name, o.Term)
			}
			// A frozen one believes what it likes; its term must be the older one, so that its feed is refused.
			if other != h && other.frozen && o.Role == Leader && o.Term.Incarnation == s.Term.Incarnation &&
				o.Term.Version >= s.Term.Version {
				fail(h, "leads under %v, but frozen %s holds the newer %v", s.Term, other.name, o.Term)
			}
		}
	}
	if replay {
		p.trace = func(h *hub, format string, args ...any) {
			t.Logf("%v %s "+format, append([]any{p.Now(), h.name}, args...)...)
		}
	}
	for _, h := range p.hubs {
		h.skew = time.Duration(rng.Int64N(int64(2*time.Hour))) - time.Hour
	}
	p.do("start all")
	for range 30 {
		p.Run(p.Now() + time.Duration(rng.Int64N(int64(12*time.Second))))
		c := fault(rng, names)
		if replay {
			t.Logf("%v * %s", p.Now(), c)
		}
		p.do(c)
	}

	slow = false
	for _, c := range []string{
		"thaw all", "answers all up", "coordinator all up", "cloud all up", "fresh all up", "streams all up",
	} {
		p.do(c)
	}
	p.Run(p.Now() + 2*time.Minute) // the longest bar is one minute, then a Lease may have to expire
	var leader *hub
	for _, h := range p.hubs {
		if h.out.Snapshot.Role == Leader {
			leader = h
		}
	}
	if leader == nil {
		t.Errorf("seed %d: healed, but nobody leads", number)
		return
	}
	for _, h := range p.hubs {
		s := h.out.Snapshot
		want := Coordinator
		if h == leader {
			want = Cloud
		}
		if s.Leader != leader.identity() || !s.Ready || s.Source != want {
			fail(h, "healed, %s leads, but: %+v", leader.name, s)
		}
	}
}
