package relay

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// restored makes a relay of another's export, as a process does that starts over.
func restored(t *testing.T, r *Relay, asOf time.Time, change ...func(*Config)) *Relay {
	t.Helper()
	x, ok := r.Export()
	if !ok {
		t.Fatal("nothing to export")
	}
	to := newRelay(t, change...)
	re := to.Restoration(x.From)
	n, objects := x.Objects()
	for o := range objects {
		n--
		if err := re.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if n != 0 {
		t.Errorf("%d objects more were announced", n)
	}
	for _, c := range x.Changes() {
		if err := re.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if to.Status().Synced {
		t.Error("a restoration shows before it is finished")
	}
	if err := re.Finish(asOf); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestRestoredServesOn: a relay that was restored gives a client that resumes what the first one would have given.
func TestRestoredServesOn(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "ns/a", 5), slice(t, "ns/b", 6), slice(t, "ns/c", 7))
	apply(t, r, wire.Modified, slice(t, "ns/a", 11, "x", "1"))
	apply(t, r, wire.Deleted, slice(t, "ns/b", 12))
	replace(t, r, 20, slice(t, "ns/a", 11, "x", "1"), slice(t, "ns/d", 15)) // a batch: c is gone
	bookmark(t, r, 22)
	apply(t, r, wire.Added, slice(t, "ns/b", 23))

	again := restored(t, r, time.Now())
	if a, b := r.Status(), again.Status(); a.Version != b.Version || a.Oldest != b.Oldest || a.Objects != b.Objects ||
		a.Bytes != b.Bytes || a.RingEvents != b.RingEvents {
		t.Errorf("restored %+v of %+v", b, a)
	}
	for version := uint64(9); version <= 24; version++ {
		if a, b := r.Resumable(version), again.Resumable(version); a != b {
			t.Errorf("resumable at %d: %v, restored %v", version, a, b)
		}
		if version >= 23 || !r.Resumable(version) {
			continue
		}
		query := fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true", version)
		want, got := watch(t, r, query), watch(t, again, query)
		for last := false; !last; {
			a, b := want.next(), got.next()
			if a != b {
				t.Fatalf("from %d: %s, restored %s", version, a, b)
			}
			last = a == "ADDED ns/b 23"
		}
		want.close()
		got.close()
	}
}

func TestRestoredIsNotFresh(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	clock := clocktesting.NewFakeClock(now)
	r := newRelay(t, withClock(clock))
	replace(t, r, 10, slice(t, "ns/a", 5))
	if s := r.Status(); !s.Fresh(clock.Now(), time.Second) || s.Restored {
		t.Errorf("fed, and %+v", s)
	}
	signs := map[string]func(r *Relay){
		"bookmark": func(r *Relay) { bookmark(t, r, 10) },
		"event":    func(r *Relay) { apply(t, r, wire.Added, slice(t, "ns/b", 11)) },
		"list":     func(r *Relay) { replace(t, r, 12) },
	}
	for name, sign := range signs {
		again := restored(t, r, now.Add(-time.Hour), withClock(clock))
		s := again.Status()
		if age, ok := s.Age(clock.Now()); !ok || age != time.Hour || !s.Restored || s.Fresh(clock.Now(), 2*time.Hour) {
			t.Errorf("restored after an hour: %v, %+v", age, s)
		}
		sign(again)
		if s := again.Status(); s.Restored || !s.Fresh(clock.Now(), time.Second) {
			t.Errorf("after a %s: %+v", name, s)
		}
	}
	future := restored(t, r, now.Add(time.Hour), withClock(clock)).Status() // the wall clock was set back
	if age, ok := future.Age(clock.Now()); !ok || age != 0 || future.Fresh(clock.Now(), time.Hour) {
		t.Errorf("age %v, %+v", age, future)
	}
	var never Status
	if _, ok := never.Age(now); ok || never.Fresh(now, time.Hour) {
		t.Error("a relay that was never fed has an age")
	}
}

// TestRestorationComesTooLate: a relay that was fed is left alone.
func TestRestorationComesTooLate(t *testing.T) {
	r := newRelay(t)
	x := r.Restoration(10)
	if err := x.Add(slice(t, "ns/a", 5)); err != nil {
		t.Fatal(err)
	}
	replace(t, r, 30)
	if err := x.Finish(time.Now()); !errors.Is(err, ErrSynced) || r.Status().Version != 30 {
		t.Errorf("%v, %+v", err, r.Status())
	}
}

// TestHalfABatch: a batch of which the end is missing is left out.
func TestHalfABatch(t *testing.T) {
	r := newRelay(t)
	x := r.Restoration(10)
	if err := x.Add(slice(t, "ns/a", 5)); err != nil {
		t.Fatal(err)
	}
	b := &mvcc.Batch{From: 10, To: 20}
	for _, c := range []*mvcc.Event{
		{Version: 10, Cur: slice(t, "ns/a", 10), Deleted: true, Batch: b},
		{Version: 15, Cur: slice(t, "ns/b", 15), Batch: b},
	} {
		if err := x.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Finish(time.Now()); err != nil {
		t.Fatal(err)
	}
	if s := r.Status(); s.Version != 10 || s.Objects != 1 || s.RingEvents != 0 {
		t.Errorf("%+v", s)
	}
}

// TestExportWhileFed: an export is one state, whatever happens meanwhile, and its place is behind it.
func TestExportWhileFed(t *testing.T) {
	r := newRelay(t, func(c *Config) { c.RingBytes = 64 << 10 })
	replace(t, r, 10, slice(t, "ns/a", 5))
	apply(t, r, wire.Added, slice(t, "ns/b", 11))
	x, _ := r.Export()
	ctx, cancel := context.WithCancel(t.Context())
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for v := uint64(12); ctx.Err() == nil || v < 14; v++ {
			apply(t, r, wire.Modified, slice(t, "ns/a", v, "x", fmt.Sprint(v)))
		}
	}()
	n, objects := x.Objects()
	var keys []string
	for o := range objects {
		keys = append(keys, fmt.Sprint(o.Key, "@", o.Version))
	}
	for _, c := range x.Changes() {
		keys = append(keys, fmt.Sprint(c.Type(), " ", c.Cur.Key, "@", c.Version))
	}
	cancel()
	<-fed
	if got := fmt.Sprint(n, x.From, x.To, keys); got != "1 10 11 [ns/a@5 ADDED ns/b@11]" {
		t.Error(got)
	}
	if _, ok := r.Since(nil, x.Next, 1); ok {
		last := r.Status().Version
		for range 1000 {
			last++
			apply(t, r, wire.Modified, slice(t, "ns/a", last, "x", fmt.Sprint(last)))
		}
	}
	if _, ok := r.Since(nil, x.Next, 1); ok {
		t.Error("the ring has passed the place, which is not told")
	}
	place := r.Place()
	last := r.Status().Version
	apply(t, r, wire.Deleted, slice(t, "ns/b", last+1))
	changes, ok := r.Since(nil, place, 5)
	if !ok || len(changes) != 1 || !changes[0].Deleted || changes[0].Version != last+1 {
		t.Errorf("%v %+v", ok, changes)
	}
	place.Seq++
	if changes, ok := r.Since(nil, place, 5); !ok || len(changes) != 0 {
		t.Errorf("%v %+v", ok, changes)
	}
	replace(t, r, last+5, slice(t, "ns/z", last)) // contradicts
	if _, ok := r.Since(nil, place, 5); ok {
		t.Error("the history was thrown away, which is not told")
	}
}
