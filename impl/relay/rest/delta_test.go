package rest

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

var deltaSeed = flag.Uint64("delta-seed", uint64(time.Now().UnixNano()), "of TestDelta")

// follower is a relay's reader, which breaks off and comes again.
type follower struct {
	t       *testing.T
	srv     *httptest.Server
	delta   bool
	read    func() (*wire.Event, error)
	close   func()
	holds   map[string]*wire.Object
	version uint64
	saw     []wire.Event
}

// opens opens a watch behind what the reader holds.
func (f *follower) opens() {
	f.t.Helper()
	query := "resourceVersion=" + wire.FormatVersion(f.version)
	if f.version == 0 {
		query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	}
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet,
		f.srv.URL+slicesPath+"?watch=1&allowWatchBookmarks=1&"+query, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set(ProgressHeader, "1")
	req.Header.Set("Accept", mediaProtobuf)
	if f.delta {
		req.Header.Set("Accept", wire.DeltaMedia+";stream=watch, "+mediaProtobuf)
	}
	resp, err := f.srv.Client().Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	f.close = func() { resp.Body.Close() }
	kind := sliceResource(f.t).WireKind()
	switch media := resp.Header.Get("Content-Type"); {
	case f.delta && media == "application/vnd.weir.delta;stream=watch":
		f.read = wire.NewDeltaReader(resp.Body, wire.Protobuf, kind, maps.Values(f.holds)).Next
	case !f.delta && media == "application/vnd.kubernetes.protobuf;stream=watch":
		f.read = wire.NewEventReader(resp.Body, wire.Protobuf, kind).Next
	default:
		f.t.Fatalf("answered %s", media)
	}
}

// until reads up to a version, which a bookmark names.
func (f *follower) until(version uint64) {
	f.t.Helper()
	for f.version < version {
		late := time.AfterFunc(patience, f.close)
		ev, err := f.read()
		if !late.Stop() || err != nil {
			f.t.Fatalf("at version %d, differences %v: %v", f.version, f.delta, err)
		}
		if f.version > 0 || ev.InitialEnd { // the initial objects are not all there before
			f.version = max(f.version, ev.Version)
		}
		switch ev.Type {
		case wire.Added, wire.Modified:
			f.holds[ev.Object.Key] = ev.Object
		case wire.Deleted:
			delete(f.holds, ev.Object.Key)
		case wire.Bookmark:
			if ev.Testimony != "" && !ev.InitialEnd { // as often as is read
				continue
			}
		}
		ev.Testimony = ""
		if ev.Object == nil {
			ev.Frame = nil // a bookmark in this form has none
		}
		f.saw = append(f.saw, *ev)
	}
}

// TestDelta: who reads differences sees the same events, to the byte, as who reads objects; also through lists that
// replace a state, and when it breaks off and comes again.
func TestDelta(t *testing.T) {
	t.Logf("seed %d: -args -delta-seed=%d", *deltaSeed, *deltaSeed)
	rnd := rand.New(rand.NewPCG(*deltaSeed, 38))
	r := newRelay(t, func(c *relay.Config) { c.Gather = -1 })
	srv := serve(t, r)
	both := []*follower{{t: t, srv: srv}, {t: t, srv: srv, delta: true}}
	version := uint64(1000)
	labels := func() (all []string) {
		for i := range 30 {
			all = append(all, fmt.Sprint("label-", i), fmt.Sprint(rnd.IntN(3)))
		}
		return all
	}
	holds := map[string]*wire.Object{}
	key := func() string { return fmt.Sprint("shop/web-", rnd.IntN(12)) }
	put := func() (typ string, o *wire.Object) {
		k := key()
		typ = wire.Added
		if holds[k] != nil {
			typ = wire.Modified
		}
		version++
		holds[k] = slice(t, k, version, labels()...)
		return typ, holds[k]
	}
	for range 8 {
		put()
	}
	replace(t, r, version, slices.Collect(maps.Values(holds))...)
	for _, f := range both {
		f.holds = map[string]*wire.Object{}
		f.opens()
	}
	for range 400 {
		switch rnd.IntN(12) {
		case 0: // the cloud is listed after a while away
			for range rnd.IntN(6) {
				put()
				delete(holds, key())
			}
			version++
			replace(t, r, version, slices.Collect(maps.Values(holds))...)
		case 1:
			k := key()
			if holds[k] == nil {
				continue
			}
			version++
			delete(holds, k)
			apply(t, r, wire.Deleted, slice(t, k, version, labels()...))
		case 2:
			for _, f := range both {
				f.until(version)
				f.close()
				f.opens()
			}
		default:
			typ, o := put()
			apply(t, r, typ, o)
		}
		if err := r.Apply(&wire.Event{Type: wire.Bookmark, Version: version}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range both {
		f.until(version)
		f.close()
		if len(f.holds) != len(holds) {
			t.Errorf("differences %v: %d objects, want %d", f.delta, len(f.holds), len(holds))
		}
	}
	if n, m := len(both[0].saw), len(both[1].saw); n != m || n < 300 {
		t.Errorf("%d events in the ordinary form, %d as differences", n, m)
	}
	for i, want := range both[0].saw {
		if got := both[1].saw[i]; !reflect.DeepEqual(got, want) {
			t.Fatalf("event %d: %s of version %d, %+v; want %s of %d, %+v", i, got.Type, got.Version, got, want.Type,
				want.Version, want)
		}
	}
}

// TestDeltaIsMadeOnce: a difference is a function of its event, so all readers get the same bytes.
func TestDeltaIsMadeOnce(t *testing.T) {
	r := newRelay(t, func(c *relay.Config) { c.Gather = -1 })
	replace(t, r, 1000, slice(t, "a/x", 999, "a", "1"))
	cursors := make([]*relay.Cursor, 3)
	for i := range cursors {
		var err error
		cursors[i], err = r.Watch(t.Context(), relay.WatchOptions{At: relay.At{Version: 1000}})
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(t, r, wire.Modified, slice(t, "a/x", 1001, "a", "2"))
	var made []*byte
	for _, c := range cursors {
		events, _, err := c.Read(nil)
		if err != nil || len(events) != 1 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		frame, err := newEncoder(r.Resource(), r.Clock(), output{media: mediaProtobuf, delta: true}).frame(&events[0])
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, &frame[0])
	}
	if made[0] != made[1] || made[1] != made[2] {
		t.Error("each reader has its own")
	}
}
