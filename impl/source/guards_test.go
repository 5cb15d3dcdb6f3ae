package source

import (
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Each guard by itself: in a pool another one stands behind it.
func TestGuards(t *testing.T) {
	r := stateOf(t, 1000, slice(t, "a", 5))
	f, err := NewFeeder(Config{Relay: r, WatchTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Status()
	if member.Plausible(s, relay.History{Number: 17, Lost: 1000}, nil) == nil {
		t.Error("history 17 is believed to follow 0")
	}
	cloud := &hop.Upstream{Name: "cloud", Consistent: true}
	same := []*wire.Object{slice(t, "a", 5)}
	if _, next := f.historyOf(cloud, s, s.History, 1000, same); next {
		t.Error("the same list is of another history")
	}
	if _, next := f.historyOf(cloud, s, s.History, 960, same); !next {
		t.Error("a list of a cloud that went back is of the same history")
	}
	if a, b := (&wire.Object{UID: "a", Version: 5}), (&wire.Object{UID: "b", Version: 5}); sameObject(a, b) ||
		!sameObject(a, a) {
		t.Error("an object of another uid is the same")
	}
}
