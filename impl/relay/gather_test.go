package relay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// shown tells how far watchers may see, and whether the timer runs.
func (r *Relay) shown() (version uint64, pending bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.gather.version, r.gather.pending
}

func gathering(t *testing.T, gather time.Duration) (*Relay, *testingclock.FakeClock) {
	t.Helper()
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock), func(c *Config) { c.Gather = gather })
	replace(t, r, 10, slice(t, "a/x", 5))
	return r, clock
}

func TestLoneChangesAreNeverHeldBack(t *testing.T) {
	r, clock := gathering(t, 20*time.Millisecond)
	for v := uint64(11); v < 20; v++ {
		clock.Step(20 * time.Millisecond)
		apply(t, r, wire.Modified, slice(t, "a/x", v))
		if got, pending := r.shown(); got != v || pending {
			t.Fatalf("after a quiet moment: shown %d of %d, timer %v", got, v, pending)
		}
	}
	if clock.HasWaiters() {
		t.Error("a timer runs though nothing is held back")
	}
}

func TestRunsOfChangesAreGathered(t *testing.T) {
	r, clock := gathering(t, 20*time.Millisecond)
	w := watch(t, r, "resourceVersion=10&allowWatchBookmarks=true")
	every := watchProgress(t, r, "resourceVersion=10&allowWatchBookmarks=true")
	eventually(t, "the watches", func() bool { return r.Status().Watchers == 2 })
	clock.Step(time.Second)
	apply(t, r, wire.Modified, slice(t, "a/x", 11))
	w.want("MODIFIED a/x 11")
	every.want("MODIFIED a/x 11")
	for _, step := range []time.Duration{0, time.Millisecond, 18 * time.Millisecond} {
		clock.Step(step)
		apply(t, r, wire.Modified, slice(t, "a/x", r.Status().Version+1))
		if got, pending := r.shown(); got != 11 || !pending {
			t.Fatalf("%v after the first change: shown %d, timer %v", step, got, pending)
		}
	}
	bookmark(t, r, 20)
	clock.Step(time.Millisecond) // 20 ms after the first
	w.want("MODIFIED a/x 12", "MODIFIED a/x 13", "MODIFIED a/x 14")
	every.want("MODIFIED a/x 12", "MODIFIED a/x 13", "MODIFIED a/x 14", "BOOKMARK 20")
}

func TestWhatIsHeldBackIsNeitherSkippedNorVouchedFor(t *testing.T) {
	r, clock := gathering(t, 20*time.Millisecond)
	before := watch(t, r, "resourceVersion=10")
	eventually(t, "the watch", func() bool { return r.Status().Watchers == 1 })
	apply(t, r, wire.Modified, slice(t, "a/x", 11)) // held back: the list was just taken
	after := watch(t, r, "resourceVersion=11&allowWatchBookmarks=true")
	between := watch(t, r, "resourceVersion=10")
	eventually(t, "the watches", func() bool { return r.Status().Watchers == 3 })
	if got, _ := r.shown(); got != 10 {
		t.Fatalf("shown %d", got)
	}
	clock.Step(20 * time.Millisecond)
	before.want("MODIFIED a/x 11")
	between.want("MODIFIED a/x 11")
	clock.Step(time.Second)
	apply(t, r, wire.Modified, slice(t, "a/x", 12))
	before.want("MODIFIED a/x 12")
	between.want("MODIFIED a/x 12")
	after.want("MODIFIED a/x 12")
}

func TestBurstsAndNewHistoriesAreShownAtOnce(t *testing.T) {
	r, clock := gathering(t, 20*time.Millisecond)
	big := strings.Repeat("x", gatherBytes/4)
	for v := uint64(11); v <= 14; v++ {
		apply(t, r, wire.Modified, object(t, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "x", ResourceVersion: fmt.Sprint(v), Annotations: map[string]string{"big": big},
		}}))
	}
	if got, _ := r.shown(); got != 14 {
		t.Errorf("a burst of %d bytes: shown %d", gatherBytes, got)
	}
	apply(t, r, wire.Modified, slice(t, "a/x", 15))
	replace(t, r, 20, slice(t, "a/x", 17))
	if got, _ := r.shown(); got != 20 {
		t.Errorf("a list: shown %d", got)
	}
	clock.Step(time.Second)
	eventually(t, "the timer to end", func() bool { _, pending := r.shown(); return !pending })
}
