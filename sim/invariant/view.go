package invariant

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// View is a history through a selector.
type View struct {
	start, last uint64
	state       map[string]client.Item // at start
	events      []expected             // after it, ascending
}

// expected is one event as a filter shows it.
type expected struct {
	typ     watch.EventType
	item    client.Item // content and identity; its own version is older than the event's if it left the selector
	version uint64
}

func (e expected) String() string { return fmt.Sprintf("%s %s at %d", e.typ, e.item.Key, e.version) }

// after is the index of the first event behind a version.
func (v *View) after(version uint64) int {
	return sort.Search(len(v.events), func(i int) bool { return v.events[i].version > version })
}

// Behind is how many events a client at a version has not seen.
func (v *View) Behind(version uint64) int { return len(v.events) - v.after(version) }

// Until is the view as it was at a version: what came later is left out.
func (v *View) Until(version uint64) *View {
	return &View{
		start: v.start, last: min(v.last, max(version, v.start)), state: v.state, events: v.events[:v.after(version)],
	}
}

// Last is the version of the last event, or of the state if there is none.
func (v *View) Last() uint64 {
	if len(v.events) == 0 {
		return v.start
	}
	return v.events[len(v.events)-1].version
}

// at is the state at a version.
func (v *View) at(version uint64) map[string]client.Item {
	state := maps.Clone(v.state)
	for _, e := range v.events[:v.after(version)] {
		apply(state, e.typ, e.item)
	}
	return state
}

// genuine reports whether the cloud had this very object, content and all.
func (v *View) genuine(it client.Item) bool {
	if old, ok := v.state[it.Key]; ok && old.Version == it.Version {
		return same(old, it)
	}
	i := v.after(it.Version) - 1
	return i >= 0 && v.events[i].version == it.Version && v.events[i].typ != watch.Deleted && same(v.events[i].item, it)
}

func same(a, b client.Item) bool {
	return a.Key == b.Key && a.UID == b.UID && a.Version == b.Version && a.Hash == b.Hash
}

// Stored compares what an informer's store holds in the end with the last state of the cloud, but for the contents. It
// returns one line for each difference.
func (v *View) Stored(items []client.Item) []string {
	want := v.at(^uint64(0))
	for k, it := range want {
		it.Hash = 0
		want[k] = it
	}
	got := make(map[string]client.Item, len(items))
	for _, it := range items {
		it.Hash = 0
		got[it.Key] = it
	}
	return differences(got, want)
}

// differences has a line for each object in which two states differ, in the order of their keys.
func differences(got, want map[string]client.Item) []string {
	var lines []string
	for k, w := range want {
		g, ok := got[k]
		switch {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s at %d is missing", k, w.Version))
		case g.Version != w.Version:
			lines = append(lines, fmt.Sprintf("%s is at %d, the cloud had it at %d", k, g.Version, w.Version))
		case g.UID != w.UID:
			lines = append(lines, fmt.Sprintf("%s at %d has uid %s, in the cloud %s", k, g.Version, g.UID, w.UID))
		case g.Hash != w.Hash:
			lines = append(lines, fmt.Sprintf("%s at %d has another content than in the cloud", k, g.Version))
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			lines = append(lines, fmt.Sprintf("%s at %d is a ghost: the cloud had none", k, g.Version))
		}
	}
	slices.Sort(lines)
	return lines
}
