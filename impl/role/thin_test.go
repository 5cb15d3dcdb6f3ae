package role

import (
	"testing"
	"time"
)

// answer steps a machine and gives its requests the results of a coordinator without Leases, until it asks for nothing
// more. It reports whether it stood.
func answer(m *Machine, in Input) (out Output, stood bool) {
	out = m.Step(in)
	for actions := out.Actions; len(actions) > 0; actions = actions[1:] {
		r := Result{Kind: actions[0].Kind, Sent: in.Now}
		if r.Kind == Acquire {
			r.Outcome, stood = Failed, true
		}
		next := in
		next.Result = &r
		out = m.Step(next)
		actions = append(actions, out.Actions...)
	}
	return out, stood
}

// A pool's cache that is not fresh and moves is catching up over a link that is full: nobody leaves it to load that
// link more. One that stands still is left.
func TestCacheThatMovesIsNotLeft(t *testing.T) {
	for moves, want := range map[bool]Source{true: Coordinator, false: Cloud} {
		m, err := New(Config{Identity: "a_1", Grace: 30 * time.Second, Spread: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		in := Input{Coordinator: true, Cloud: true, Unproven: true, Have: true}
		var out Output
		for ; in.Now <= 5*time.Minute; in.Now += time.Second {
			if moves && in.Now%(20*time.Second) == 0 {
				in.Reached++
			}
			out, _ = answer(m, in)
		}
		if out.Snapshot.Source != want {
			t.Errorf("moves %t: fed from %v, want %v", moves, out.Snapshot.Source, want)
		}
	}
}

// Of hubs that find no Lease, one that holds only what its disk held stands later than others: theirs is newer.
func TestRestoredHubStandsLast(t *testing.T) {
	stands := func(restored bool) time.Duration {
		m, err := New(Config{Identity: "a_1", Grace: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		in := Input{Cloud: true, Have: true, Restored: restored}
		answer(m, in)
		for in.Now = 10 * time.Second; in.Now < time.Minute; in.Now += 100 * time.Millisecond {
			in.Coordinator = true // lost its disk, and is back
			if _, stood := answer(m, in); stood {
				return in.Now - 10*time.Second
			}
		}
		return -1
	}
	newer, older := stands(false), stands(true)
	if newer < 0 || older < 4*time.Second || older < newer+2*time.Second {
		t.Errorf("a hub stands after %v, one from its disk after %v", newer, older)
	}
}

// A hub without a state waits for the hub that leads, which may take a while to list over a thin link, but not for
// ever. If nobody leads, it does not wait.
func TestHubWithoutAStateWaitsForTheLeader(t *testing.T) {
	const wait, grace, spread = 10 * time.Second, 30 * time.Second, 20 * time.Second
	for holder, want := range map[string][2]time.Duration{"b_1": {wait + grace, wait + grace + spread}, "": {wait, wait}} {
		m, err := New(Config{Identity: "a_1", Wait: wait, Grace: grace, Spread: spread})
		if err != nil {
			t.Fatal(err)
		}
		in := Input{Coordinator: true, Cloud: true, Unproven: true}
		for ; in.Now <= 2*time.Minute; in.Now += time.Second {
			out := m.Step(in)
			for _, a := range out.Actions {
				next := in
				next.Result = &Result{Kind: a.Kind, Sent: in.Now}
				if a.Kind == ReadElection && holder != "" {
					next.Result.Lease = Record{
						Exists: true, Holder: holder, Duration: 15 * time.Second, RenewTime: time.Unix(0, 0).Add(in.Now),
					}
				}
				out = m.Step(next)
			}
			if out.Snapshot.Source == Cloud {
				break
			}
		}
		if in.Now < want[0] || in.Now > want[1]+time.Second {
			t.Errorf("holder %q: to the cloud after %v, want %v", holder, in.Now, want)
		}
	}
}

// A hub to which the cloud gives nothing does not stand: it would lead in vain. It stands as soon as it is given
// something.
func TestHubWithoutRightsDoesNotStand(t *testing.T) {
	m, err := New(Config{Identity: "a_1"})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Coordinator: true, Cloud: true, Unable: true}
	for ; in.Now < time.Minute; in.Now += 100 * time.Millisecond {
		if out, stood := answer(m, in); stood || out.Snapshot.Role != Follower {
			t.Fatalf("at %v it stands for election: %+v", in.Now, out.Snapshot)
		}
	}
	in.Unable = false
	if _, stood := answer(m, in); !stood {
		t.Error("it has rights now, and does not stand at once")
	}
}
