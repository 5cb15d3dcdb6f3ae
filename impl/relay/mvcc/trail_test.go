package mvcc

import (
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// A trail has an end, whatever comes.
func TestTrailIsBounded(t *testing.T) {
	trail := NewTrail(0)
	o := &wire.Object{Key: "a/x", Version: 1}
	for v := uint64(1); v <= maxTrail; v++ {
		if !trail.Step(&wire.Event{Type: wire.Modified, Version: v, Object: o}) {
			t.Fatalf("no room at %d", v)
		}
	}
	if trail.Step(&wire.Event{Type: wire.Modified, Version: maxTrail + 1, Object: o}) || trail.Reached() != maxTrail {
		t.Error("it takes more")
	}
}
