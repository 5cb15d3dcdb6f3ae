package heartbeat

import (
	"testing"
	"time"
)

// TestNeeded: each heartbeat that the cloud does not take is worth a write in the coordinator. Of those that it takes,
// the first one is, and one after each Quiet; so is each until it is known that the coordinator has heard of the
// return.
func TestNeeded(t *testing.T) {
	n, at, stated := &Node{}, time.Duration(0), Statement{}
	beat := func(after time.Duration, taken, want bool, why string) {
		t.Helper()
		at += after
		n.Beat(at, true)
		n.Passed(at, taken)
		stated = n.Statement(time.Unix(1e9, 0).Add(at))
		if stated.Needed != want {
			t.Errorf("%s: needed %t, want %t", why, stated.Needed, want)
		}
	}
	beat(Interval, true, true, "the first")
	beat(Interval, true, true, "the first was not written")
	n.Written(stated)
	beat(Interval, true, false, "it is known")
	beat(Quiet-2*Interval, true, false, "a little less than Quiet")
	beat(Interval, true, true, "Quiet is over")
	n.Written(stated)
	beat(Interval, false, true, "cut off")
	n.Written(stated)
	beat(Interval, false, true, "still")
	n.Written(stated)
	beat(Interval, true, true, "back")
	beat(Interval, true, true, "back, and the coordinator has not heard of it")
	n.Written(stated)
	beat(Interval, true, false, "back, and all is said")
}
