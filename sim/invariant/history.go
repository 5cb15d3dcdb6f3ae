package invariant

import (
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// History is all that happened to one resource, taken down at kube-apiserver by a recorder that lists once and never loses
// its watch.
type History struct {
	start  uint64
	state  map[string]client.Item // at start
	events []client.Op            // after start, ascending
	last   uint64                 // version up to which it is complete
}

// NewHistory reads a recorder of the truth. A recording that itself has a gap is an error: it proves nothing.
func NewHistory(ops []client.Op) (*History, error) {
	h := &History{state: map[string]client.Item{}}
	initial := false
	for _, op := range ops {
		switch op.What {
		case client.OpList:
			if h.start != 0 {
				return nil, fmt.Errorf("the recorder of the truth listed twice, at %d and %d", h.start, op.Version)
			}
			for _, it := range op.Items {
				h.state[it.Key] = it
			}
			h.start, h.last = op.Version, op.Version
		case client.OpOpen:
			initial = op.Initial
			if initial && h.start != 0 {
				return nil, fmt.Errorf("the recorder of the truth listed twice")
			}
		case client.OpInitialEnd:
			h.start, h.last, initial = op.Version, op.Version, false
		case client.OpEvent:
			if initial {
				h.state[op.Item.Key] = op.Item
				continue
			}
			h.events = append(h.events, op)
			h.last = op.Version
		case client.OpBookmark:
			h.last = op.Version
		}
	}
	if h.start == 0 {
		return nil, fmt.Errorf("the recorder of the truth has no list")
	}
	return h, nil
}

// Last is the version up to which the history is complete.
func (h *History) Last() uint64 { return h.last }

// expected is one event as a filter shows it.
type expected struct {
	typ     watch.EventType
	item    client.Item
	version uint64
	old     bool // its content is the previous one under a new version: the hash is not known
}

// View is a history through a selector.
type View struct {
	start  uint64
	last   uint64
	state  map[string]client.Item
	events []expected
}

// Through returns the history as a watch with a selector should show it.
func (h *History) Through(sel labels.Selector) *View {
	v := &View{start: h.start, last: h.last, state: map[string]client.Item{}}
	all := map[string]client.Item{}
	for k, it := range h.state {
		all[k] = it
		if sel.Matches(labels.Set(it.Labels)) {
			v.state[k] = it
		}
	}
	for _, op := range h.events {
		prev, existed := all[op.Item.Key]
		was := existed && sel.Matches(labels.Set(prev.Labels))
		is := op.Type != watch.Deleted && sel.Matches(labels.Set(op.Item.Labels))
		if op.Type == watch.Deleted {
			delete(all, op.Item.Key)
		} else {
			all[op.Item.Key] = op.Item
		}
		e := expected{item: op.Item, version: op.Version}
		switch {
		case is && was:
			e.typ = watch.Modified
		case is:
			e.typ = watch.Added
		case was:
			e.typ, e.old = watch.Deleted, op.Type != watch.Deleted
		default:
			continue
		}
		v.events = append(v.events, e)
	}
	return v
}

// after is the index of the first event behind a version.
func (v *View) after(version uint64) int {
	return sort.Search(len(v.events), func(i int) bool { return v.events[i].version > version })
}

// Behind is how many events a client at a version has not seen.
func (v *View) Behind(version uint64) int { return len(v.events) - v.after(version) }

// at is the state at a version.
func (v *View) at(version uint64) map[string]client.Item {
	state := make(map[string]client.Item, len(v.state))
	for k, it := range v.state {
		state[k] = it
	}
	for _, e := range v.events[:v.after(version)] {
		if e.typ == watch.Deleted {
			delete(state, e.item.Key)
		} else {
			state[e.item.Key] = e.item
		}
	}
	return state
}

// Holds tells whether the history ends in a state: resourceVersions by key.
func (h *History) Holds(want map[string]string) bool {
	state := map[string]uint64{}
	for k, it := range h.state {
		state[k] = it.Version
	}
	for _, op := range h.events {
		if op.Type == watch.Deleted {
			delete(state, op.Item.Key)
		} else {
			state[op.Item.Key] = op.Item.Version
		}
	}
	if len(state) != len(want) {
		return false
	}
	for k, v := range want {
		if fmt.Sprint(state[k]) != v {
			return false
		}
	}
	return true
}
