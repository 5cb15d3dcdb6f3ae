package role

import (
	"testing"
	"time"
)

// TestLeasesForEver: what a Lease asks for counts up to a multiple of what hubs are configured to ask for. Else one write stops the
// elections of a pool for 68 years, and another one makes its cache fresh for as long.
func TestLeasesForEver(t *testing.T) {
	const ages = (1<<31 - 1) * time.Second
	m, err := New(Config{Identity: "a_1"})
	if err != nil {
		t.Fatal(err)
	}
	ghost := func(version string) *Record {
		return &Record{Exists: true, Holder: "ghost_1", Duration: ages, UID: "u", Version: version, RenewTime: time.Unix(int64(len(version)), 0)}
	}
	in := Input{Coordinator: true, Cloud: true, Election: ghost("1"), Sync: ghost("1")}
	m.Step(in)
	in.Election, in.Sync = nil, ghost("12")
	if out := m.Step(in); !out.Snapshot.Ready {
		t.Fatal("a change of leader-informer-sync does not make it ready")
	}
	in.Sync = nil
	acquired := time.Duration(0)
	for in.Now = time.Second; acquired == 0 && in.Now <= 5*time.Minute; in.Now += time.Second {
		for actions := m.Step(in).Actions; len(actions) > 0; actions = actions[1:] {
			r := Result{Kind: actions[0].Kind, Sent: in.Now, Outcome: Failed}
			switch r.Kind {
			case ReadElection:
				r.Lease, r.Outcome = *ghost("1"), OK
			case ReadSync:
				r.Lease, r.Outcome = *ghost("12"), OK
			case Acquire:
				acquired = in.Now
			}
			answer := in
			answer.Result = &r
			actions = append(actions, m.Step(answer).Actions...)
		}
	}
	if want := 4 * 15 * time.Second; acquired < want || acquired > want+5*time.Second {
		t.Errorf("the election is tried after %v, want %v and a moment", acquired, want)
	}
	if out := m.Step(Input{Now: 4*30*time.Second + time.Second, Coordinator: true, Cloud: true}); out.Snapshot.Ready {
		t.Error("the pool's cache counts as fresh two minutes after the last sign")
	}
}
