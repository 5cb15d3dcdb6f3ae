package invariant

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

var front = map[string]string{"tier": "front"}

// object is a/<name> at a version, with a content of that version.
func object(name string, version uint64, labels map[string]string) client.Item {
	return client.Item{Key: "a/" + name, UID: "uid-" + name, Version: version, Hash: version * 1000, Labels: labels}
}

// small is a history in which x leaves the selector tier=front at 12, and comes back at 14.
func small() []client.Op {
	gone := object("y", 13, front)
	gone.Hash = 11 * 1000
	return []client.Op{
		list(10, object("x", 9, front)),
		{What: client.OpOpen, Version: 10},
		event(watch.Added, object("y", 11, front), 11),
		event(watch.Modified, object("x", 12, nil), 12),
		event(watch.Deleted, gone, 13),
		event(watch.Modified, object("x", 14, front), 14),
		{What: client.OpBookmark, Version: 20},
	}
}

func list(version uint64, items ...client.Item) client.Op {
	return client.Op{What: client.OpList, Version: version, Items: items}
}

// leaves is how x leaves tier=front: the content of 9 under version 12.
func leaves() client.Op {
	old := object("x", 9, front)
	return event(watch.Deleted, old, 12)
}

func through(t *testing.T, selector string) *View {
	t.Helper()
	h, err := NewHistory(small())
	if err != nil {
		t.Fatal(err)
	}
	sel, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return h.Through(sel)
}

// TestVerdicts has one small stream for each thing that a verdict tells.
func TestVerdicts(t *testing.T) {
	open := func(version uint64) client.Op { return client.Op{What: client.OpOpen, Version: version} }
	x9, x14 := list(10, object("x", 9, front)), list(20, object("x", 14, front))
	y11 := event(watch.Added, object("y", 11, front), 11)
	y13 := event(watch.Deleted, small()[4].Item, 13)
	x14again := event(watch.Added, object("x", 14, front), 14)
	expired := client.Op{What: client.OpError, Code: 410, Err: "too old"}
	tests := []struct {
		name   string
		ops    []client.Op
		rules  []string // broken, sorted
		detail string   // part of what is said
		causes map[string]int
	}{
		{name: "faithful", ops: []client.Op{x9, open(10), y11, leaves(), y13, x14again}},
		{name: "resumed", ops: []client.Op{x9, open(10), y11, open(11), leaves(), y13, open(13), x14again}},
		{name: "replayed", ops: []client.Op{x9, open(10), y11, leaves(), open(11), leaves(), y13, x14again}},
		{name: "expired", ops: []client.Op{x9, open(10), expired, x14, open(20)}, causes: map[string]int{"410 Gone": 1}},
		{
			name: "expired between", ops: []client.Op{x9, open(10), y11, {What: client.OpError, Err: "reset"}, expired, x14},
			causes: map[string]int{"no answer": 1},
		},
		{
			name: "cause of long ago", ops: []client.Op{x9, open(10), expired, open(10), y11, x14},
			causes: map[string]int{"no cause was seen": 1},
		},
		{
			name: "too short", ops: []client.Op{x9, open(10), {What: client.OpClose}, x14},
			causes: map[string]int{causeShort: 1},
		},
		{
			name: "list under way", ops: []client.Op{
				x9, open(10), y11, leaves(), y13, x14again, expired, {What: client.OpOpen, Initial: true},
			}, causes: map[string]int{"410 Gone": 1},
		},
		{
			name: "content of the leaver", ops: []client.Op{
				x9, open(10), y11, event(watch.Deleted, object("x", 12, nil), 12), y13, x14again,
			}, rules: []string{Filtered}, detail: "previous content",
		},
		{
			name: "leaver modified", ops: []client.Op{
				x9, open(10), y11, event(watch.Modified, object("x", 12, nil), 12), y13, x14again,
			}, rules: []string{Filtered}, detail: "should be DELETED a/x at 12",
		},
		{
			name: "never told", ops: []client.Op{x9, open(10), y11, y13, x14again}, rules: []string{Reliable},
			detail: "DELETED a/x at 12 never came",
		},
		{
			name: "lost at a resume", ops: []client.Op{x9, open(10), y11, open(11), y13, x14again}, rules: []string{Resumable},
			detail: "DELETED a/x at 12 never came",
		},
		{
			name: "hidden", ops: []client.Op{x9, open(10), y11, {What: client.OpBookmark, Version: 13}, x14again},
			rules: []string{Bookmarkable}, detail: "hides 2 events, the first is DELETED a/x at 12",
		},
		{
			name: "back", ops: []client.Op{x14, open(20), x9}, rules: []string{NeverBack, Reliable},
			causes: map[string]int{causeUnknown: 1},
		},
		{
			name: "empty", ops: []client.Op{x14, open(20), list(20)}, rules: []string{NeverEmpty, Complete},
			causes: map[string]int{causeUnknown: 1},
		},
		{
			name: "beyond the history", ops: []client.Op{x14, open(20), event(watch.Added, object("z", 30, front), 30)},
			rules: []string{Filtered, Complete}, detail: "should not be in this stream",
		},
		{
			name: "malformed", ops: []client.Op{x14, {What: client.OpError, Malformed: true, Err: "unknown field"}},
			rules: []string{WellFormed}, detail: "unknown field",
		},
		{name: "nothing", rules: []string{Complete}, detail: "never had a complete state"},
		{
			name: "cut off", ops: []client.Op{x9, open(10), y11}, rules: []string{Reliable},
			detail: "3 events after 11 never came",
		},
	}
	v := through(t, "tier=front")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Judge(v, test.ops)
			var said []string
			for _, x := range got.Violations {
				said = append(said, x.String())
				if !slices.Contains(test.rules, x.Rule) {
					t.Errorf("broken: %s", x)
				}
			}
			if len(said) == 0 && len(test.rules) > 0 {
				t.Errorf("nothing is broken, want %v", test.rules)
			}
			if all := strings.Join(said, "\n"); !strings.Contains(all, test.detail) {
				t.Errorf("said\n%s\nwant %q in it", all, test.detail)
			}
			if want := test.causes; !maps.Equal(got.Causes, want) || got.Relists != len(want) {
				t.Errorf("%d re-lists by %v, want %v", got.Relists, got.Causes, want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	v := through(t, "")
	got := Judge(v, append(small(), client.Op{What: client.OpClose}, client.Op{What: client.OpOpen, Version: 20}))
	if len(got.Violations) > 0 {
		t.Fatal(got.Violations)
	}
	got.Causes = nil
	want := Verdict{Adds: 1, Updates: 2, Deletes: 1, Bookmarks: 1, Lists: 1, Resumes: 2}
	if got.Adds != want.Adds || got.Updates != want.Updates || got.Deletes != want.Deletes ||
		got.Bookmarks != want.Bookmarks ||
		got.Lists != want.Lists || got.Resumes != want.Resumes || got.Relists != 0 || got.Missing != 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestStored(t *testing.T) {
	v := through(t, "")
	x := object("x", 14, nil)
	if d := v.Stored([]client.Item{{Key: x.Key, UID: x.UID, Version: 14}}); len(d) > 0 {
		t.Error(d)
	}
	x.Version = 12
	got := strings.Join(v.Stored([]client.Item{x, {Key: "a/z", Version: 3}}), "; ")
	if want := "a/x is at 12, the cloud had it at 14; a/z at 3 is a ghost: the cloud had none"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestTheTruthHasNoGaps: what does not prove to be the whole history is no history.
func TestTheTruthHasNoGaps(t *testing.T) {
	at := func(i int, op client.Op) []client.Op { return slices.Insert(small(), i, op) }
	open := client.Op{What: client.OpOpen, Version: 13}
	for name, ops := range map[string][]client.Op{
		"nothing":           nil,
		"listed twice":      at(4, list(12)),
		"streamed twice":    at(4, client.Op{What: client.OpOpen, Initial: true}),
		"resumed too late":  at(4, open),
		"the same again":    at(3, small()[2]),
		"no list":           small()[1:],
		"cannot be read":    at(3, client.Op{What: client.OpError, Malformed: true}),
		"an end of nothing": at(3, client.Op{What: client.OpInitialEnd, Version: 11}),
	} {
		if _, err := NewHistory(ops); err == nil {
			t.Errorf("%s: was believed", name)
		}
	}
	broke := []client.Op{{What: client.OpError, Err: "reset"}, {What: client.OpOpen, Version: 12}}
	h, err := NewHistory(slices.Insert(small(), 4, broke...))
	if err != nil {
		t.Fatal(err)
	}
	if h.Last() != 20 || !h.Holds(map[string]string{"a/x": "14"}) || h.Holds(map[string]string{"a/x": "12"}) ||
		h.Holds(nil) {
		t.Errorf("history ends at %d: %+v", h.Last(), h)
	}
	again := list(25)
	for _, it := range h.end() {
		again.Items = append(again.Items, it)
	}
	if h, err := NewHistory(append(small(), client.Op{What: client.OpError, Code: 410}, again)); err != nil ||
		h.Last() != 25 {
		t.Errorf("a list of the same state at 25: %v, %+v", err, h)
	}
	streamed := []client.Op{
		{What: client.OpOpen, Initial: true}, event(watch.Added, object("x", 5, nil), 5),
		event(watch.Added, object("y", 6, nil), 6),
	}
	if _, err := NewHistory(append(streamed, client.Op{What: client.OpOpen, Initial: true},
		client.Op{What: client.OpInitialEnd, Version: 7})); err != nil {
		t.Errorf("a streaming list that was begun again: %v", err)
	}
	if _, err := NewHistory(streamed); err == nil || errors.Is(err, errListedTwice) {
		t.Errorf("a streaming list without an end: %v", err)
	}
}
