package relay

import (
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestBatchPassesOn: what one relay had to find out by a list, the next one takes as the same batch, as a whole.
func TestBatchPassesOn(t *testing.T) {
	first, second := newRelay(t), newRelay(t)
	for _, r := range []*Relay{first, second} {
		replace(t, r, 10, slice(t, "a/x", 5), slice(t, "a/y", 6))
	}
	feed := watchProgress(t, first, "resourceVersion=10&allowWatchBookmarks=true")
	client := watch(t, second, "resourceVersion=10&allowWatchBookmarks=true")
	intake := NewIntake(second)
	take := func() *wire.Event {
		t.Helper()
		ev, err := feed.events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := intake.Apply(ev); err != nil {
			t.Fatal(err)
		}
		return ev
	}

	replace(t, first, 20, slice(t, "a/x", 15), slice(t, "a/z", 20))
	if ev := take(); ev.Version != 10 || ev.BatchTo != 20 {
		t.Fatalf("the batch begins with %+v", ev)
	}
	for range 3 { // DELETED a/y, MODIFIED a/x, ADDED a/z
		take()
		if v := second.Status().Version; v != 10 {
			t.Fatalf("at %d inside the batch", v)
		}
	}
	if ev := take(); ev.Type != wire.Bookmark || ev.Version != 20 {
		t.Fatalf("the batch ends with %+v", ev)
	}
	client.want("DELETED a/y 10", "MODIFIED a/x 15", "ADDED a/z 20", "BOOKMARK 20")
	watch(t, second, "resourceVersion=10&allowWatchBookmarks=true").want("DELETED a/y 10", "MODIFIED a/x 15",
		"ADDED a/z 20", "BOOKMARK 20")
	watch(t, second, "resourceVersion=15").want("ERROR 410")
}

// TestClientAheadMeetsABatch: a client that saw more than the state that a batch starts from would not see what it
// deletes.
func TestClientAheadMeetsABatch(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/x", 5), slice(t, "a/y", 6))
	inside, end := watch(t, r, "resourceVersion=15"), watch(t, r, "resourceVersion=20&allowWatchBookmarks=true")
	replace(t, r, 20, slice(t, "a/x", 5))
	inside.want("ERROR 410", "EOF")
	apply(t, r, wire.Modified, slice(t, "a/x", 21))
	end.want("MODIFIED a/x 21")
}

// TestRelayAheadTakesABatch: an Intake refuses a batch that starts before what was reached, and passes over one that
// ends there.
func TestRelayAheadTakesABatch(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 15, slice(t, "a/x", 5), slice(t, "a/y", 6))
	batch := func(from, to uint64) error {
		i := NewIntake(r)
		for _, ev := range []*wire.Event{
			{Type: wire.Bookmark, Version: from, BatchTo: to},
			{Type: wire.Deleted, Version: from, Object: slice(t, "a/y", from)},
			{Type: wire.Bookmark, Version: to},
		} {
			if err := i.Apply(ev); err != nil {
				return err
			}
		}
		return nil
	}
	if err := batch(10, 15); err != nil || r.Status().Objects != 2 {
		t.Errorf("a batch that ends where the relay is: %v, %d objects", err, r.Status().Objects)
	}
	if err := batch(10, 20); err == nil {
		t.Error("a relay inside a batch has taken it")
	}
	if err := batch(15, 20); err != nil || r.Status().Objects != 1 || r.Status().Version != 20 {
		t.Errorf("a batch: %v, %+v", err, r.Status())
	}
}
