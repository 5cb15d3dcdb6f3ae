package role

import (
	"testing"
	"time"
)

// TestOutrunAnswers: a read that was answered before a Lease came into being may arrive after the watch that shows it.
// It takes nothing back.
func TestOutrunAnswers(t *testing.T) {
	m, err := New(Config{Identity: "a_1"})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Coordinator: true}
	step := func(after time.Duration) Output {
		in.Now += after
		out := m.Step(in)
		in.Result, in.Election, in.Sync = nil, nil, nil
		return out
	}
	lease := func(holder string) *Record {
		return &Record{Exists: true, Holder: holder, Duration: 40 * time.Second, UID: "u", Version: "7"}
	}
	step(0)
	in.Result = &Result{Kind: ReadElection}
	step(time.Millisecond)
	in.Result = &Result{Kind: ReadSync}
	step(time.Millisecond)

	asked := in.Now
	in.Election = lease("b_1")
	step(time.Millisecond)
	in.Sync = lease("b_1")
	if out := step(time.Millisecond); !out.Snapshot.Ready || out.Snapshot.Leader != "b_1" {
		t.Fatalf("the watch showed both Leases, and the machine says %+v", out.Snapshot)
	}
	for _, kind := range []Kind{ReadSync, ReadElection} {
		in.Result = &Result{Kind: kind, Sent: asked}
		out := step(time.Millisecond)
		if !out.Snapshot.Ready || out.Snapshot.Leader != "b_1" {
			t.Errorf("an answer to %v from before made it %+v", kind, out.Snapshot)
		}
		if len(out.Actions) != 1 || out.Actions[0].Kind != kind {
			t.Errorf("%v is in doubt, and what follows is %v", kind, out.Actions)
		}
	}
	for _, kind := range []Kind{ReadSync, ReadElection} { // asked since
		in.Result = &Result{Kind: kind, Sent: in.Now}
		step(time.Millisecond)
	}
	if out := step(0); out.Snapshot.Ready || out.Snapshot.Leader != "" {
		t.Errorf("both Leases are gone, and the machine says %+v", out.Snapshot)
	}
}
