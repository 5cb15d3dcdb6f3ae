package relay

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestWhatAPeerSendsIsBounded: attack 57. A batch that never ends, and events without end, are refused; the cloud's are
// not.
func TestWhatAPeerSendsIsBounded(t *testing.T) {
	small := func() *Relay {
		r, err := New(Config{Resource: newRelay(t).Resource(), MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		replace(t, r, 10, slice(t, "a/x", 5))
		return r
	}
	const many = 2000 // more than 1 MiB, by 1 KiB beside each
	feed := func(r *Relay, i *Intake) (n int, err error) {
		for n < many && err == nil {
			n++
			err = i.Apply(&wire.Event{
				Type: wire.Added, Version: uint64(10 + n), Object: slice(t, fmt.Sprint("a/o", n), uint64(10+n)),
			})
		}
		return n, err
	}
	var full *FullError
	r := small()
	if n, err := feed(r, NewIntake(r).Bound()); !errors.As(err, &full) || n < 500 || r.Status().Objects > 1024 {
		t.Errorf("%d events: %v; %d objects", n, err, r.Status().Objects)
	}
	r = small()
	i := NewIntake(r).Bound()
	if err := i.Apply(&wire.Event{Type: wire.Bookmark, Version: 10, BatchTo: 1e6}); err != nil {
		t.Fatal(err)
	}
	if n, err := feed(r, i); !errors.As(err, &full) || n < 500 || r.Status().Objects != 1 {
		t.Errorf("%d events of a batch: %v; %d objects", n, err, r.Status().Objects)
	}
	r = small()
	if n, err := feed(r, NewIntake(r)); err != nil || n != many {
		t.Errorf("%d events of the cloud: %v", n, err)
	}
	// What is held may change, and go, when there is no room for more.
	if err := NewIntake(r).Bound().Apply(&wire.Event{
		Type: wire.Modified, Version: 3000, Object: slice(t, "a/o1500", 3000),
	}); err != nil {
		t.Errorf("a change: %v", err)
	}
	if err := NewIntake(r).Bound().Apply(&wire.Event{
		Type: wire.Deleted, Version: 3001, Object: slice(t, "a/o1500", 3001),
	}); err != nil {
		t.Errorf("a deletion: %v", err)
	}
}
