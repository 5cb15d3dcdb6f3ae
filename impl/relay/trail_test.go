package relay

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// walk is a trail of metadata events behind a version, written "ADDED a/x 11", with perhaps "k=v" as labels.
func walk(t *testing.T, from uint64, events ...string) *mvcc.Trail {
	t.Helper()
	trail := mvcc.NewTrail(from)
	for _, e := range events {
		var typ, key, label string
		var version uint64
		if n, _ := fmt.Sscanf(e, "%s %s %d %s", &typ, &key, &version, &label); n < 3 {
			t.Fatalf("event %q", e)
		}
		ev := &wire.Event{Type: typ, Version: version}
		if typ != wire.Bookmark {
			var pairs []string
			if label != "" {
				pairs = []string{"k", label}
			}
			ev.Object = slice(t, key, version, pairs...)
		}
		if !trail.Step(ev) {
			t.Fatalf("no room for %q", e)
		}
	}
	return trail
}

// along gives a relay a list with the way to it.
func along(t *testing.T, r *Relay, trail *mvcc.Trail, version uint64, items ...*wire.Object) {
	t.Helper()
	i := NewIntake(r)
	i.Along(trail)
	if err := i.End(r.Status().History, &wire.Event{Type: wire.Bookmark, Version: version, InitialEnd: true},
		items); err != nil {
		t.Fatal(err)
	}
}

// TestAheadOfTheDisk: after a loss of power a relay has an older state than its clients have seen. With the way to a
// list they go on where they are, whether they were there before the list or come later, and so does a relay that is
// ahead, with clients of its own.
func TestAheadOfTheDisk(t *testing.T) {
	r, other := newRelay(t), newRelay(t)
	replace(t, r, 10, slice(t, "a/x", 5), slice(t, "a/y", 6), slice(t, "a/z", 7))
	replace(t, other, 13, slice(t, "a/x", 12), slice(t, "a/y", 6), slice(t, "a/z", 7))
	early, ahead := watch(t, r, "resourceVersion=13&allowWatchBookmarks=true"),
		watch(t, other, "resourceVersion=15&allowWatchBookmarks=true")
	feed := watchProgress(t, r, "resourceVersion=13&allowWatchBookmarks=true")
	trail := walk(t, 10, "MODIFIED a/x 12", "DELETED a/y 14", "MODIFIED a/x 16", "MODIFIED a/z 18", "ADDED a/n 19")
	along(t, r, trail, 20, slice(t, "a/x", 16), slice(t, "a/z", 18), slice(t, "a/n", 19))

	rest := []string{"MODIFIED a/x 16", "MODIFIED a/z 18", "ADDED a/n 19"}
	all := append([]string{"DELETED a/y 14"}, rest...)
	early.want(append(all, "BOOKMARK 20")...)
	for from, want := range map[int][]string{10: all, 13: all, 14: rest, 15: rest, 18: rest[2:]} {
		watch(t, r, fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true", from)).want(want...)
	}
	watch(t, r, "resourceVersion=13&fieldSelector=metadata.name%3Dn").want("ADDED a/n 19")
	if _, err := listAt(t, r, 15); !errors.Is(err, ErrPast) {
		t.Errorf("exact list inside a batch: %v", err)
	}

	intake := NewIntake(other).Bound()
	for other.Status().Version < 20 {
		ev, err := feed.events.Next()
		if err == nil {
			err = intake.Apply(ev)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ahead.want(rest...)
	watch(t, other, "resourceVersion=14").want(rest...)
	// what follows the last change is not known to be nothing.
	watch(t, r, "resourceVersion=19&allowWatchBookmarks=true").want("BOOKMARK 20")
}

// TestTrailThatDoesNotTell: who is inside a batch lists if the way to it does not say what they have.
func TestTrailThatDoesNotTell(t *testing.T) {
	const part = "a part is known"
	for name, c := range map[string]struct {
		way     []string
		unclear string
		admits  string // versions from 11 to 19
	}{
		"nothing is known": {nil, "false", ""},
		part:               {[]string{"MODIFIED a/x 12", "MODIFIED a/x 14"}, "map[]", "11 12 13 14"},
		"all": {
			[]string{"MODIFIED a/x 12", "MODIFIED a/x 16", "DELETED a/y 17", "BOOKMARK - 20"}, "map[]",
			"11 12 13 14 15 16 17 18 19",
		},
		"a deletion is not":      {[]string{"MODIFIED a/x 12", "MODIFIED a/x 16"}, "map[a/y:0]", ""},
		"what it says is not so": {[]string{"MODIFIED a/x 15", "DELETED a/y 17", "BOOKMARK - 20"}, "false", ""},
		"nor is that": {
			[]string{"MODIFIED a/x 16", "DELETED a/y 17", "MODIFIED a/w 18", "BOOKMARK - 20"}, "false", "",
		},
		"changed, then deleted": {
			[]string{"MODIFIED a/y 12", "MODIFIED a/x 16", "DELETED a/y 17", "BOOKMARK - 20"}, "map[a/y:0]", "",
		},
		"came and went": {
			[]string{"ADDED a/g 11", "DELETED a/g 15", "MODIFIED a/x 16", "DELETED a/y 17"}, "map[a/g:0]", "",
		},
		"labels come and go":  {[]string{"MODIFIED a/x 12 l", "MODIFIED a/x 16", "DELETED a/y 17"}, "map[a/x:16]", ""},
		"it begins elsewhere": {[]string{"BOOKMARK - 9"}, "false", ""},
		"an object that nobody knew": {
			[]string{"DELETED a/g 12", "MODIFIED a/x 16", "DELETED a/y 17", "BOOKMARK - 20"}, "map[a/g:0]", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelay(t)
			items := []*wire.Object{slice(t, "a/x", 16), slice(t, "a/w", 4)}
			replace(t, r, 10, slice(t, "a/x", 5), slice(t, "a/y", 6), slice(t, "a/w", 4))
			if name == part {
				items = append(items, slice(t, "a/y", 6))
			}
			trail := walk(t, 10, c.way...)
			unclear, ok := r.Unclear(trail, 20, items)
			if got := fmt.Sprint(unclear); got != c.unclear && (ok || c.unclear != "false") {
				t.Errorf("unclear are %s, %t, want %s", got, ok, c.unclear)
			}
			along(t, r, trail, 20, items...)
			got := []string{}
			for v := uint64(11); v < 20; v++ {
				if r.Resumable(v) {
					got = append(got, fmt.Sprint(v))
				}
			}
			if got := strings.Join(got, " "); got != c.admits {
				t.Errorf("admitted are %q, want %q", got, c.admits)
			}
		})
	}
}

// TestUnclearIsTold: an object that came, went or changed its labels on the way to a list is told in all its forms, and
// so each client sees what it would have seen, whatever it has seen and selects.
func TestUnclearIsTold(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/x", 5), slice(t, "a/y", 6), slice(t, "a/z", 7))
	items := []*wire.Object{slice(t, "a/x", 17), slice(t, "a/z", 18)}
	trail := walk(t, 10, "MODIFIED a/x 11 l", "ADDED a/g 12", "MODIFIED a/z 13", "MODIFIED a/y 14", "DELETED a/g 15",
		"DELETED a/y 16", "MODIFIED a/x 17", "MODIFIED a/z 18")
	unclear, ok := r.Unclear(trail, 20, items)
	if want := "map[a/g:0 a/x:17 a/y:0]"; !ok || fmt.Sprint(unclear) != want {
		t.Fatalf("unclear are %v, %t, want %s", unclear, ok, want)
	}
	trail.Tell("a/g", []*wire.Event{
		{Type: wire.Added, Version: 12, Object: slice(t, "a/g", 12, "k", "l")},
		{Type: wire.Deleted, Version: 15, Object: slice(t, "a/g", 15, "k", "l")},
	})
	trail.Tell("a/x", []*wire.Event{
		{Type: wire.Modified, Version: 11, Object: slice(t, "a/x", 11, "k", "l")},
		{Type: wire.Modified, Version: 17, Object: slice(t, "a/x", 17)},
		{Type: wire.Modified, Version: 30, Object: slice(t, "a/x", 30)}, // that comes by the watch
	})
	trail.Tell("a/y", []*wire.Event{
		{Type: wire.Modified, Version: 14, Object: slice(t, "a/y", 14)},
		{Type: wire.Deleted, Version: 16, Object: slice(t, "a/y", 16)},
	})
	along(t, r, trail, 20, items...)
	all := []string{
		"MODIFIED a/x 11", "ADDED a/g 12", "MODIFIED a/y 14", "DELETED a/g 15", "DELETED a/y 16", "MODIFIED a/x 17",
		"MODIFIED a/z 18", "BOOKMARK 20",
	}
	labelled := []string{"ADDED a/x 11", "ADDED a/g 12", "DELETED a/g 15", "DELETED a/x 17", "BOOKMARK 20"}
	for from, left := range map[int][2]int{10: {0, 0}, 11: {1, 1}, 12: {2, 2}, 13: {2, 2}, 15: {4, 3}, 17: {6, 4}} {
		query := fmt.Sprintf("allowWatchBookmarks=true&resourceVersion=%d", from)
		watch(t, r, query).want(all[left[0]:]...)
		watch(t, r, query+"&labelSelector=k%3Dl").want(labelled[left[1]:]...)
	}
	if s := r.Status(); s.Objects != 2 || s.Version != 20 {
		t.Errorf("%+v", s)
	}
}
