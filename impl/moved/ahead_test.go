package moved

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestAhead: a client at 110 goes on at a relay at 100. What it was shown of an object here makes up for what it has
// seen elsewhere, so it is shown all that comes of that object. Of others it is shown what it has not seen.
func TestAhead(t *testing.T) {
	s := pool(t, "a")
	v := NewView(wire.Protobuf, s.SliceForm(wire.Protobuf, func(string, string) bool { return false }), nil)
	event := func(typ, name string, version uint64, points ...string) wire.Event {
		x := sliceOf(name, discoveryv1.AddressTypeIPv4, points...)
		x.ResourceVersion = strconv.FormatUint(version, 10)
		raw, err := x.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		o, err := wire.ParseObject(wire.Protobuf, raw)
		if err != nil {
			t.Fatal(err)
		}
		return wire.Event{Type: typ, Version: version, Object: o}
	}
	mark := func(version uint64) wire.Event { return wire.Event{Type: wire.Bookmark, Version: version} }
	web, other := event(wire.Added, "web", 90, "p@a 10.0.0.1 rs"), event(wire.Added, "other", 95, "x@a 10.0.0.2 rs")
	objects := each(other.Object, web.Object)
	wants := func(got []wire.Event, want ...string) {
		t.Helper()
		var said []string
		for _, ev := range got {
			switch {
			case ev.Object == nil:
				said = append(said, fmt.Sprint(ev.Type, " ", ev.Version))
			case ev.Object == v.form(ev.Object) && ev.Version >= 90:
				said = append(said, fmt.Sprint(ev.Type, " ", ev.Object.Name, " ", ev.Version))
			default:
				said = append(said, fmt.Sprint(ev.Type, " ", ev.Object.Name))
			}
		}
		if strings.Join(said, ", ") != strings.Join(want, ", ") {
			t.Errorf("%q, want %q", said, want)
		}
	}
	w := NewWatch(v, all, true)
	wants(w.Resume(110, 100, objects))
	wants(w.Step(mark(102)))
	wants(w.Step(event(wire.Modified, "other", 105, "x@a 10.0.0.2 rs")))
	wants(w.Step(event(wire.Deleted, "web", 106)))
	wants(w.Step(mark(110)), "BOOKMARK 110")
	wants(w.Step(event(wire.Modified, "other", 111, "x@a 10.0.0.2 rs")), "MODIFIED other 111")

	says(t, s, "a", 1, "p=10.0.0.9")
	deleted := NewWatch(v, all, true)
	had := deleted.Resume(110, 100, objects)
	if wants(had[1:], "BOOKMARK 100"); had[0].Type != wire.Modified || had[0].Version >= 90 {
		t.Errorf("%v", had[0])
	}
	wants(deleted.Step(mark(102)), "BOOKMARK 102")
	wants(deleted.Step(event(wire.Deleted, "web", 104)), "DELETED web 104")
	wants(deleted.Step(event(wire.Added, "web", 106, "x@a 10.0.0.3 rs")), "ADDED web 106")
	wants(deleted.Step(event(wire.Modified, "other", 107, "x@a 10.0.0.3 rs")))

	ended := NewWatch(v, all, true)
	ended.Resume(110, 100, objects)
	says(t, s, "a", 2)
	s.Settle(Reached{})
	wants(ended.Changed(objects), "MODIFIED web 90", "BOOKMARK 100")
	wants(ended.Changed(objects))
	wants(ended.Step(event(wire.Modified, "web", 105, "x@a 10.0.0.3 rs")), "MODIFIED web 105")
}
