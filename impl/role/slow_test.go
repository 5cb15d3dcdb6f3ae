package role

import (
	"testing"
	"time"
)

// TestSlowAnswers: what a hub was granted counts from when it asked, not from when the answer came. Others wait from
// about then.
func TestSlowAnswers(t *testing.T) {
	const slow = 8 * time.Second // less than the deadline
	m, err := New(Config{Identity: "a_1"})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Coordinator: true, Cloud: true}
	out := m.Step(in)
	// find does what the machine asks for at once, until it asks for one kind of thing.
	find := func(want Kind) Action {
		t.Helper()
		for range 1000 {
			for _, a := range out.Actions {
				if a.Kind == want {
					return a
				}
				if a.Kind == ReadElection {
					in.Result = &Result{Kind: a.Kind, Sent: in.Now}
				}
			}
			if in.Result == nil {
				in.Now = out.Wake
			}
			out = m.Step(in)
			in.Result = nil
		}
		t.Fatalf("no action of kind %v", want)
		return Action{}
	}
	granted := func(kind Kind) (sent time.Duration) {
		t.Helper()
		lease := find(kind).Lease
		lease.Exists, lease.UID, lease.Version = true, "u", "7"
		sent = in.Now
		in.Now += slow
		in.Result = &Result{Kind: kind, Sent: sent, Lease: lease, Incarnation: "i"}
		out = m.Step(in)
		in.Result = nil
		if out.Snapshot.Role != Leader {
			t.Fatalf("%v was granted, and it is %v: %s", kind, out.Snapshot.Role, out.Snapshot.Reason)
		}
		return sent
	}
	expires := func(kind Kind, sent time.Duration) {
		t.Helper()
		in.Now = sent + 10*time.Second
		if out = m.Step(in); out.Snapshot.Role == Leader {
			t.Errorf("it leads %v after it had asked for what was granted last, %v", in.Now-sent, kind)
		}
	}
	expires(Acquire, granted(Acquire))
}
