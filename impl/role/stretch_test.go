package role

import (
	"testing"
	"time"
)

// TestLeasesForEver: what a Lease asks for counts up to a multiple of what hubs are configured to ask for. Else one
// write stops the elections of a pool for 68 years, and another one makes its cache fresh for as long.
func TestLeasesForEver(t *testing.T) {
	const ages = (1<<31 - 1) * time.Second
	m, err := New(Config{Identity: "a_1"})
	if err != nil {
		t.Fatal(err)
	}
	ghost := func(version string) *Record {
		return &Record{
			Exists: true, Holder: "ghost_1", Duration: ages, UID: "u", Version: version,
			RenewTime: time.Unix(int64(len(version)), 0),
		}
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

// TestSlowRenewal: a lead counts from when its renewal was sent. Others count from when it was written, and a late
// answer lengthens nothing.
func TestSlowRenewal(t *testing.T) {
	const step, late = 100 * time.Millisecond, 4 * time.Second
	m, err := New(Config{Identity: "a_1"})
	if err != nil {
		t.Fatal(err)
	}
	var sent, ended time.Duration
	var slow *Result
	led := false
	in := Input{Coordinator: true, Cloud: true, Fresh: true}
	for ; ended == 0 && in.Now < time.Minute; in.Now += step {
		answer := in
		if slow != nil && in.Now >= sent+late {
			answer.Result, slow = slow, nil
		}
		out := m.Step(answer)
		for actions := out.Actions; len(actions) > 0; actions = actions[1:] {
			r := Result{Kind: actions[0].Kind, Sent: in.Now}
			switch r.Kind {
			case Feed, StopFeed:
				continue
			case ReadElection, ReadSync:
				if sent != 0 { // nothing but the answer to the renewal gets through
					r.Outcome = Failed
				}
			case Acquire:
				r.Lease, r.Incarnation = actions[0].Lease, "i"
				r.Lease.Exists, r.Lease.UID, r.Lease.Version = true, "u", "1"
			case Renew:
				if sent == 0 {
					sent = in.Now
					slow = &Result{Kind: Renew, Sent: in.Now, Lease: actions[0].Lease}
					slow.Lease.UID, slow.Lease.Version = "u", "2"
					continue
				}
				r.Outcome = Failed
			default:
				r.Outcome = Failed
			}
			answer := in
			answer.Result = &r
			out = m.Step(answer)
			actions = append(actions, out.Actions...)
		}
		leads := m.Step(in).Snapshot.Role == Leader
		if led && !leads {
			ended = in.Now
		}
		led = led || leads
	}
	if want := sent + 10*time.Second; sent == 0 || ended < want || ended > want+2*step {
		t.Errorf("sent at %v, answered at %v: led until %v, want %v", sent, sent+late, ended, want)
	}
}
