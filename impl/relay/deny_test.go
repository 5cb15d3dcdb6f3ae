package relay

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestDeny: what the source does not give is answered as the source does, from when it says so until it shows a sign of
// later. Watches end, as clean as those of a kube-apiserver do, and are resumed when it is over.
func TestDeny(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
	r := newRelay(t, withClock(clock))
	why := apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "")
	r.Deny(why)
	if r.Denied() == nil {
		t.Error("before the first list it is given")
	}
	clock.Step(time.Second)
	replace(t, r, 10, slice(t, "a/x", 5))
	if r.Denied() != nil {
		t.Error("a list did not end it")
	}

	w := watch(t, r, "resourceVersion=10")
	clock.Step(time.Second)
	r.Deny(why)
	w.want("EOF")
	for _, version := range []uint64{0, 10} {
		if _, err := r.Watch(t.Context(), WatchOptions{At: At{Version: version}}); !apierrors.IsNotFound(err) {
			t.Errorf("a watch from %d: %v", version, err)
		}
	}
	if s := r.Status(); s.Fresh(clock.Now(), time.Hour) || !strings.HasPrefix(s.Denied, "404 ") || s.Objects != 1 {
		t.Errorf("%+v", s)
	}

	old := &Testimony{Version: 10, AsOf: clock.Now().Add(-time.Millisecond)}
	if err := r.apply(&wire.Event{Type: wire.Bookmark, Version: 11}, nil); err != nil {
		t.Fatal(err)
	}
	if r.Denied() != nil {
		t.Error("a bookmark of the cloud did not end it")
	}
	clock.Step(time.Second)
	r.Deny(why)
	old.Version = 12
	if err := r.apply(&wire.Event{Type: wire.Bookmark, Version: 12}, old); err != nil {
		t.Fatal(err)
	}
	if r.Denied() == nil {
		t.Error("it was ended by unconfirmed data of before")
	}
	apply(t, r, wire.Modified, slice(t, "a/x", 13))
	if r.Denied() != nil || !r.Resumable(10) {
		t.Errorf("an event of the cloud did not end it, or nobody can resume: %+v", r.Status())
	}
}

// TestRetire: watches of a relay that is used no more end in order, behind all that there is, and with a bookmark: a
// client that has only just begun goes on from its version, and one that saw nothing for long knows a version that its
// next server remembers. No sign of the source brings it back.
func TestRetire(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
	r := newRelay(t, withClock(clock))
	replace(t, r, 10, slice(t, "a/x", 5))
	plain := watch(t, r, "resourceVersion=10")
	marked := watch(t, r, "resourceVersion=10&allowWatchBookmarks=true")
	fresh := watch(t, r, "sendInitialEvents=true&allowWatchBookmarks=true")
	fresh.want("ADDED a/x 5", "END 10")
	apply(t, r, wire.Modified, slice(t, "a/x", 11))
	apply(t, r, wire.Modified, slice(t, "a/x", 12)) // held back for a moment
	r.Retire()
	plain.want("MODIFIED a/x 11", "MODIFIED a/x 12", "EOF")
	marked.want("MODIFIED a/x 11", "MODIFIED a/x 12", "BOOKMARK 12", "EOF")
	fresh.want("MODIFIED a/x 11", "MODIFIED a/x 12", "BOOKMARK 12", "EOF")
	clock.Step(time.Second)
	if err := r.apply(&wire.Event{Type: wire.Bookmark, Version: 13}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Watch(t.Context(), WatchOptions{At: At{Version: 12}}); !apierrors.IsNotFound(err) {
		t.Errorf("a watch: %v", err)
	}
}
