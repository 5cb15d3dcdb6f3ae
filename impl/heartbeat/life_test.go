package heartbeat

import (
	"testing"
	"time"
)

var aLease = Lease{Version: "1", Renew: epoch, Delegated: true}

// One action of one forwarder, which leads.
func only(t *testing.T, f *Forwarder, now time.Duration) Action {
	t.Helper()
	actions, _ := f.Next(now)
	if len(actions) != 1 {
		t.Fatalf("at %v: actions %v, want one", now, actions)
	}
	return actions[0]
}

// TestHeartbeatsExpire: a heartbeat that could not be forwarded within its life is not forwarded at all, neither by the
// one that saw it nor by the one that leads next. The cloud would take it for a sign of life of the moment.
func TestHeartbeatsExpire(t *testing.T) {
	leader, next := NewForwarder(1), NewForwarder(1)
	leader.Lead(true)
	const seen = 100 * time.Second
	for _, f := range []*Forwarder{leader, next} {
		f.See(seen, "a", aLease, true)
	}
	if actions, _ := next.Next(seen); len(actions) > 0 {
		t.Errorf("a follower forwards: %v", actions)
	}
	only(t, leader, seen)
	leader.Done(seen+Life, Result{Kind: ReadCloud, Node: "a", Outcome: Failed})
	only(t, leader, seen+Life) // just in time
	leader.Done(seen+Life, Result{Kind: ReadCloud, Node: "a", Outcome: OK, Lease: aLease})
	next.Lead(true)
	for name, f := range map[string]*Forwarder{"the leader": leader, "the next leader": next} {
		if actions, _ := f.Next(seen + Life + tick); len(actions) > 0 {
			t.Errorf("%s forwards a heartbeat of %v ago: %v", name, Life+tick, actions)
		}
		if f.Expired != 1 {
			t.Errorf("%s counts %d heartbeats that expired", name, f.Expired)
		}
	}
}

// TestFailedWriteIsReadAgain: a write of which nobody knows whether it was applied is not repeated from what was read
// before it.
func TestFailedWriteIsReadAgain(t *testing.T) {
	f := NewForwarder(1)
	f.Lead(true)
	f.See(0, "a", aLease, true)
	only(t, f, 0)
	f.Done(0, Result{Kind: ReadCloud, Node: "a", Outcome: OK, Lease: aLease})
	if a := only(t, f, 0); a.Kind != Write {
		t.Fatalf("a Lease that is annotated in the cloud was read: %v", a.Kind)
	}
	f.Done(0, Result{Kind: Write, Node: "a", Outcome: Failed})
	if a := only(t, f, 0); a.Kind != ReadCloud {
		t.Errorf("behind a write that failed comes %v", a.Kind)
	}
}

// TestFirstSightOfANewProcess: its clock begins near zero. What it finds then is no heartbeat either.
func TestFirstSightOfANewProcess(t *testing.T) {
	f := NewForwarder(1)
	f.Lead(true)
	f.See(time.Second, "a", aLease, false)
	if actions, _ := f.Next(time.Second); len(actions) > 0 {
		t.Errorf("a Lease of unknown age was taken for a heartbeat: %v", actions)
	}
}
