package relay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// A client that resumes where a batch begins of which the ring has dropped a part would miss deletions: 410.
func TestBatchTrimmedInPart(t *testing.T) {
	r := newRelay(t, func(c *Config) { c.RingBytes, c.Gather = 64<<10, -1 })
	big := strings.Repeat("x", 8<<10)
	replace(t, r, 10, slice(t, "a/0", 1, "big", big), slice(t, "a/1", 2, "big", big), slice(t, "a/2", 3, "big", big))
	replace(t, r, 20) // a batch of three deletions
	first := r.state.Base()
	for version := uint64(21); r.state.Base() == first; version++ {
		apply(t, r, wire.Added, slice(t, fmt.Sprint("a/", version), version, "big", big))
	}
	events, _ := r.state.Since(nil, mvcc.Place{Seq: r.state.Base(), Epoch: r.state.Epoch()}, 1)
	if b := events[0].Batch; b == nil || b.From != 10 {
		t.Fatalf("the ring begins with %+v, not inside the batch", events[0])
	}
	for _, v := range []uint64{10, 15, 19} {
		if r.Resumable(v) {
			t.Errorf("resumable at %d, though deletions of the batch from 10 to 20 are gone", v)
		}
		watch(t, r, fmt.Sprint("resourceVersion=", v)).want("ERROR 410", "EOF")
	}
	watch(t, r, "resourceVersion=20").want("ADDED a/21 21")
}

// A relay that is behind a client vouches for nothing: no bookmark comes before it has caught up.
func TestNoBookmarkWhileBehind(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock))
	replace(t, r, 10, slice(t, "a/x", 5))
	w := watch(t, r, "resourceVersion=40&allowWatchBookmarks=true&timeoutSeconds=100")
	asleep := func() bool { return r.Status().Watchers == 1 && clock.HasWaiters() }
	eventually(t, "the watch to sleep", asleep)
	clock.Step(61 * time.Second)
	eventually(t, "the watch to sleep", asleep)
	apply(t, r, wire.Modified, slice(t, "a/x", 30)) // which the client has seen
	bookmark(t, r, 41)
	eventually(t, "the watch to sleep", asleep)
	clock.Step(37 * time.Second)
	w.want("BOOKMARK 41")
	eventually(t, "the watch to sleep", asleep)
	clock.Step(2 * time.Second)
	w.want("EOF")
}
