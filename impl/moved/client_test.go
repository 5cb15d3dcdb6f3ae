package moved

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// client is an informer: what it holds, what its handlers were told, and where it would resume.
type client struct {
	w         *world
	bookmarks bool
	store     map[string]*wire.Object
	told      map[string]*wire.Object // by handlers: an update with the version that the store has is none
	at        uint64
	watch     *Watch
	next      int  // of the relay's events
	listing   bool // a streaming list is under way, into list
	list      map[string]*wire.Object
	high      uint64 // the highest that it was at
	torn      bool   // it may be shown again what it has seen
	ahead     bool   // its watch began ahead of the relay
}

func (c *client) failed(format string, args ...any) { c.w.t.Helper(); c.w.t.Errorf(format, args...) }

func all(*wire.Object) bool { return true }

// replace takes a list.
func (c *client) replace(version uint64, list map[string]*wire.Object) {
	for key := range c.told {
		if list[key] == nil {
			delete(c.told, key)
		}
	}
	for key, o := range list {
		if old := c.store[key]; old == nil || old.Version != o.Version {
			c.told[key] = o
		} else if !bytes.Equal(old.Raw, o.Raw) {
			c.failed("a list has %s at %d with another content: no handler is told", key, o.Version)
		}
	}
	c.store, c.at, c.torn, c.high, c.ahead = list, version, false, max(c.high, version), false
}

// lists reads a list and opens a watch, either by itself or as a streaming list.
func (c *client) lists(streaming bool) {
	watch := NewWatch(c.w.view, all, c.bookmarks)
	if c.watch = watch; streaming && c.bookmarks {
		watch.Begin(c.w.reached())
		c.listing, c.list, c.next = true, map[string]*wire.Object{}, c.w.heard
		state, sent := c.w.holds(), 0
		for _, key := range slices.Sorted(maps.Keys(state)) {
			c.take(watch.Step(wire.Event{Type: wire.Added, Version: state[key].Version, Object: state[key]}))
			if sent++; sent == 2 && c.w.rnd.IntN(2) == 0 { // meanwhile
				c.w.changes()
			}
		}
		c.take(watch.Step(wire.Event{Type: wire.Bookmark, Version: c.w.reached(), InitialEnd: true}))
		return
	}
	list := map[string]*wire.Object{}
	for o := range c.w.objects() {
		list[o.Key] = c.w.view.Show(o)
	}
	c.replace(c.w.reached(), list)
	c.resumes()
}

// resumes opens a watch where the client is. If that is before all that the relay knows, it gets 410, and lists.
func (c *client) resumes() {
	if c.at < c.w.cloud[0].Version {
		c.lists(false)
		return
	}
	c.watch, c.ahead = NewWatch(c.w.view, all, c.bookmarks), c.at > c.w.reached()
	from := min(c.at, c.w.reached())
	c.next = slices.IndexFunc(c.w.cloud, func(ev wire.Event) bool { return ev.Version > from })
	if c.next < 0 {
		c.next = len(c.w.cloud)
	}
	c.take(c.watch.Resume(c.at, c.w.reached(), c.w.objects()))
}

// take takes events, all or the first some: then the connection breaks.
func (c *client) take(events []wire.Event) {
	if c.watch == nil {
		return
	}
	if n := len(events); n > 0 && c.w.rnd.IntN(12) == 0 {
		events = events[:c.w.rnd.IntN(n)]
		defer c.breaks()
	}
	for i := range events {
		c.event(&events[i])
	}
}

func (c *client) breaks() {
	c.w.counts["breaks"]++
	c.torn = c.torn || c.at < c.high || c.watch != nil && c.at < c.watch.ahead
	c.watch, c.listing = nil, false
}

func (c *client) event(ev *wire.Event) {
	if reached := max(c.w.reached(), c.at); ev.Version > reached {
		c.failed("%s at %d, and the relay has %d", ev.Type, ev.Version, reached)
	}
	switch {
	case ev.Type == wire.Bookmark && ev.InitialEnd:
		c.listing = false
		c.replace(ev.Version, c.list)
		return
	case ev.Type == wire.Bookmark:
		if ev.Version < c.at {
			c.failed("a bookmark at %d, it is at %d", ev.Version, c.at)
		}
	case c.listing:
		c.list[ev.Object.Key] = ev.Object
	case ev.Type == wire.Deleted:
		delete(c.store, ev.Object.Key)
		delete(c.told, ev.Object.Key)
	default:
		c.holds(ev.Object)
	}
	if !c.listing {
		c.at, c.high = ev.Version, max(c.high, ev.Version)
	}
}

// holds takes one object, and judges it.
func (c *client) holds(o *wire.Object) {
	old := c.store[o.Key]
	switch {
	case old == nil || old.Version != o.Version:
		c.told[o.Key] = o
	case !bytes.Equal(old.Raw, o.Raw):
		c.failed("%s comes at %d with another content: no handler is told", o.Key, o.Version)
	}
	of := base(c.w, o)
	if strconv.FormatUint(o.Version, 10) != of {
		c.w.counts["corrected"]++
	} else if c.w.view.owed[o.Key] != o.Version && !c.torn && old != nil && of < base(c.w, old) {
		c.failed("%s, which is not corrected, goes back from %s to %s", o.Key, base(c.w, old), of)
	}
	if old != nil && !c.torn && !c.ahead && of < base(c.w, old) {
		c.failed("%s goes back from %s to %s", o.Key, base(c.w, old), base(c.w, o))
	}
	c.store[o.Key] = o
	for _, ev := range c.w.cloud { // as a write that is based on it: the cloud compares versions
		if ev.Object.Key == o.Key && ev.Version == o.Version && !bytes.Equal(ev.Object.Raw, o.Raw) {
			c.failed("a corrected form of %s has the version %d of the cloud's own", o.Key, o.Version)
		}
	}
}

// base is the version of which an object is a form.
func base(w *world, o *wire.Object) string {
	var s discoveryv1.EndpointSlice
	if err := s.Unmarshal(o.Raw); err != nil {
		w.t.Fatal(err)
	}
	return s.Annotations["base"] // all have as many digits
}

// drains reads all that there is, and judges where the client is then.
func (c *client) drains() {
	for c.watch != nil && c.next < c.w.heard {
		n := min(1+c.w.rnd.IntN(3), c.w.heard-c.next)
		events := slices.Clone(c.w.cloud[c.next : c.next+n])
		if c.next += n; c.w.rnd.IntN(4) == 0 && c.bookmarks {
			events = append(events, wire.Event{Type: wire.Bookmark, Version: events[n-1].Version})
		}
		c.take(c.watch.Step(events...))
	}
	if c.watch == nil {
		return
	}
	want := map[string]*wire.Object{}
	for o := range c.w.objects() {
		if want[o.Key] = c.w.view.form(o); want[o.Key] == o && c.watch.ahead > 0 { // it may have a later one
			delete(want, o.Key)
		}
	}
	if c.watch.ahead > 0 {
		c.w.counts["ahead"]++
		got := maps.Clone(c.told)
		maps.DeleteFunc(got, func(key string, _ *wire.Object) bool { return want[key] == nil })
		if d := differ(c.w, got, want); d != "" {
			c.failed("ahead at %d: %s", c.at, d)
		}
		return
	}
	if d := differ(c.w, c.told, want); d != "" {
		c.failed("at %d, handlers: %s", c.at, d)
	}
	if d := differ(c.w, c.store, want); d != "" {
		c.failed("at %d: %s", c.at, d)
	}
	if c.bookmarks && c.at < c.high {
		c.failed("it is at %d, and was at %d", c.at, c.high)
	}
	c.torn = c.torn && !c.bookmarks
}

// differ tells how contents differ, but for versions.
func differ(w *world, got, want map[string]*wire.Object) string {
	for key, o := range want {
		g := got[key]
		if g == nil {
			return key + " is missing"
		}
		same, err := g.WithVersion(wire.Protobuf, o.Version)
		if err != nil {
			w.t.Fatal(err)
		}
		if !bytes.Equal(same.Raw, o.Raw) {
			return fmt.Sprintf("%s at %d, a form of %s, is not what it should be, a form of %s", key, g.Version, base(w, g),
				base(w, o))
		}
	}
	for key := range got {
		if want[key] == nil {
			return key + " is not there any more"
		}
	}
	return ""
}
