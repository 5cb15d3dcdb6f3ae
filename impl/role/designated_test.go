package role

import (
	"math/rand/v2"
	"testing"
	"time"
)

// namedHub is a machine in a pool whose leaders are named, with what it observes there.
type namedHub struct {
	machine           *Machine
	mine              bool
	cloud, silent     bool
	leads, wasAtCloud bool
	out               Output
	lost              time.Duration // when it had last a reason to be where it is
}

// TestNamedSafety leads hubs of a pool without a coordinator through random schedules of faults in virtual time: only a
// leader hub that hears the cloud leads; nobody else goes to the cloud before the grace period is over, or while a
// leader hub is fresh; a leader hub without the cloud reads another only if that hears it; and when all is healed, each
// leader hub leads and each other hub reads one.
func TestNamedSafety(t *testing.T) {
	if *seed != 0 {
		namedSchedule(t, *seed)
		return
	}
	for range *schedules {
		s := rand.Uint64()
		if namedSchedule(t, s); t.Failed() {
			t.Fatalf("repeat with: go test ./impl/role -run TestNamedSafety -seed %d", s)
		}
	}
}

func namedSchedule(t *testing.T, number uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(number, 1))
	grace, spread := time.Duration(rng.Int64N(int64(20*time.Second))), time.Duration(rng.Int64N(int64(20*time.Second)))
	hubs := make([]*namedHub, 2+rng.IntN(5))
	for i := range hubs {
		m, err := New(Config{Identity: string(rune('a'+i)) + "_1", Grace: grace, Spread: spread, Seed: rng.Uint64()})
		if err != nil {
			t.Fatal(err)
		}
		hubs[i] = &namedHub{machine: m, mine: i == 0 || i == 1 && rng.IntN(2) == 0, cloud: true}
	}
	step := func(now time.Duration) {
		for i, h := range hubs {
			in := Input{Now: now, Cloud: h.cloud, Silent: h.silent, Have: true, Designated: Others, Fresh: true}
			if h.mine {
				in.Designated = Mine
			}
			for j, l := range hubs { // others of the leader hubs, as they were seen last
				if j == i || !l.mine {
					continue
				}
				in.Coordinator = true
				if l.leads {
					in.Shown = string(rune('a' + j))
				}
			}
			h.out = h.machine.Step(in)
			s := h.out.Snapshot
			fail := func(what string) { t.Errorf("seed %d, %v, hub %d: %s: %+v with %+v", number, now, i, what, s, in) }
			if s.Role == Leader && (!h.mine || !h.cloud || h.silent) {
				fail("leads")
			}
			if s.Term != (Snapshot{}).Term {
				fail("has a term")
			}
			switch {
			case h.mine && s.Source == Coordinator && in.Shown == "":
				fail("a leader hub reads one that does not hear the cloud")
			case h.mine && s.Role == Leader && s.Source != Cloud:
				fail("leads and does not read the cloud")
			case !h.mine && s.Source == Cloud && !h.wasAtCloud && now < h.lost+grace:
				fail("goes to the cloud within the grace period")
			}
			if in.Shown != "" || !h.cloud || s.Source == Cloud {
				h.lost = now
			}
			h.wasAtCloud = s.Source == Cloud
		}
		for _, h := range hubs {
			h.leads = h.out.Snapshot.Role == Leader
		}
	}
	now := time.Duration(0)
	pass := func(d time.Duration) {
		for end := now + d; now < end && !t.Failed(); now += 250 * time.Millisecond {
			step(now)
		}
	}
	pass(time.Second)
	for range 30 {
		h := hubs[rng.IntN(len(hubs))]
		switch rng.IntN(5) {
		case 0:
			h.cloud = !h.cloud
		case 1:
			h.silent = !h.silent
		case 2: // the whole pool
			cut := rng.IntN(2) == 0
			for _, o := range hubs {
				o.cloud = cut
			}
		case 3: // somebody else is named; one stays
			hubs[1].mine, hubs[1].lost = !hubs[1].mine, now
			hubs[1].wasAtCloud = true
		}
		pass(time.Duration(rng.Int64N(int64(15 * time.Second))))
	}
	for _, h := range hubs {
		h.cloud, h.silent = true, false
	}
	pass(2*spread + grace + 5*time.Second)
	for i, h := range hubs {
		s := h.out.Snapshot
		if want := map[bool]Role{true: Leader, false: Follower}[h.mine]; s.Role != want || s.Source != map[bool]Source{
			true: Cloud, false: Coordinator,
		}[h.mine] {
			t.Errorf("seed %d: healed, hub %d (leader hub: %t) is %+v", number, i, h.mine, s)
		}
	}
}

// TestNamedChange: a pool goes to leader hubs and back. What was asked of the coordinator before counts for nothing
// after, and no two requests of a kind are under way.
func TestNamedChange(t *testing.T) {
	m, err := New(Config{Identity: "a_1"})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Coordinator: true, Cloud: true, Fresh: true}
	kinds := func(o Output) (all []Kind) {
		for _, a := range o.Actions {
			all = append(all, a.Kind)
		}
		return all
	}
	o := m.Step(in)
	if got := kinds(o); len(got) != 2 || got[0] != ReadElection || got[1] != ReadSync {
		t.Fatalf("it asks %v", got)
	}
	in.Result = &Result{Kind: ReadElection}
	if o = m.Step(in); len(o.Actions) != 1 || o.Actions[0].Kind != Acquire {
		t.Fatalf("it does %v", kinds(o))
	}
	in.Now, in.Designated, in.Result = time.Second, Mine, nil
	if o = m.Step(in); o.Snapshot.Role != Leader || len(o.Actions) != 1 || o.Actions[0].Kind != Feed {
		t.Fatalf("as a leader hub it is %+v and does %v", o.Snapshot, kinds(o))
	}
	in.Now, in.Designated = 2*time.Second, Elected
	if o = m.Step(in); o.Snapshot.Role != Follower || len(o.Actions) != 1 || o.Actions[0].Kind != StopFeed {
		t.Fatalf("back, it is %+v and does %v: both its requests are still under way", o.Snapshot, kinds(o))
	}
	in.Result = &Result{
		Kind: Acquire, Lease: Record{Exists: true, Holder: "a_1", Version: "7"}, Incarnation: "x", Sent: time.Second,
	}
	if o = m.Step(in); o.Snapshot.Role == Leader || len(o.Actions) != 1 || o.Actions[0].Kind != ReadElection {
		t.Fatalf("by an answer of before it is %+v and does %v", o.Snapshot, kinds(o))
	}
}
