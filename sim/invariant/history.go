package invariant

import (
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// History is all that happened to one resource, taken down at kube-apiserver by a recorder with labels that lists once
// and never loses its watch, or only while nothing is written.
type History struct {
	start  uint64
	state  map[string]client.Item // at start
	events []client.Op            // after start, ascending
	last   uint64                 // version up to which it is complete
}

// NewHistory reads a recorder of the truth. A recording that itself has a gap is an error: it proves nothing.
func NewHistory(ops []client.Op) (*History, error) {
	h := &History{}
	var initial map[string]client.Item
	for i, op := range ops {
		if err := h.read(op, &initial); err != nil {
			return nil, fmt.Errorf("the recorder of the truth: op %d, %v: %w", i, op, err)
		}
	}
	if h.state == nil {
		return nil, errors.New("the recorder of the truth has no list")
	}
	if initial != nil {
		return nil, errors.New("the recorder of the truth lists again")
	}
	return h, nil
}

var errListedTwice = errors.New("it listed again and shows another state, so events are missing")

func (h *History) read(op client.Op, initial *map[string]client.Item) error {
	switch op.What {
	case client.OpList:
		state := map[string]client.Item{}
		for _, it := range op.Items {
			state[it.Key] = it
		}
		return h.whole(op.Version, state)
	case client.OpOpen:
		switch *initial = nil; {
		case op.Initial:
			*initial = map[string]client.Item{}
		case op.Version > h.last:
			return fmt.Errorf("it had only reached %d, so events may be missing", h.last)
		}
	case client.OpInitialEnd:
		if *initial == nil {
			return errListedTwice
		}
		state := *initial
		*initial = nil
		return h.whole(op.Version, state)
	case client.OpEvent:
		switch {
		case *initial != nil:
			apply(*initial, op.Type, op.Item)
		case h.state == nil:
			return errors.New("it had no list before")
		case op.Version <= h.last:
			return fmt.Errorf("it had reached %d before", h.last)
		default:
			h.events, h.last = append(h.events, op), op.Version
		}
	case client.OpBookmark:
		h.last = max(h.last, op.Version)
	case client.OpClose:
		*initial = nil
	case client.OpError:
		*initial = nil
		if op.Malformed {
			return errors.New("it cannot be read")
		}
	}
	return nil
}

// whole takes a complete state. A second one proves that nothing is missing if it is the state of before: whoever lets
// a recorder lose its watch sees to it that nothing is written meanwhile.
func (h *History) whole(version uint64, state map[string]client.Item) error {
	if h.state == nil {
		h.state, h.start, h.last = state, version, version
		return nil
	}
	if version < h.last {
		return fmt.Errorf("it had reached %d before", h.last)
	}
	if d := differences(state, h.end()); len(d) > 0 {
		return fmt.Errorf("%w: %s", errListedTwice, d[0])
	}
	h.last = version
	return nil
}

// end is the last state.
func (h *History) end() map[string]client.Item {
	state := make(map[string]client.Item, len(h.state))
	for k, it := range h.state {
		state[k] = it
	}
	for _, op := range h.events {
		apply(state, op.Type, op.Item)
	}
	return state
}

// Last is the version up to which the history is complete.
func (h *History) Last() uint64 { return h.last }

// Holds reports whether the history ends in a state: resourceVersions by key.
func (h *History) Holds(want map[string]string) bool {
	state := h.end()
	if len(state) != len(want) {
		return false
	}
	for k, v := range want {
		if strconv.FormatUint(state[k].Version, 10) != v {
			return false
		}
	}
	return true
}

// Through returns the history as list and watch with a selector should show it.
func (h *History) Through(sel labels.Selector) *View {
	v := &View{start: h.start, last: h.last, state: map[string]client.Item{}}
	all := make(map[string]client.Item, len(h.state))
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
		apply(all, op.Type, op.Item)
		e := expected{item: op.Item, version: op.Version}
		switch {
		case is && was:
			e.typ = watch.Modified
		case is:
			e.typ = watch.Added
		case was && op.Type == watch.Deleted:
			e.typ = watch.Deleted
		case was: // it leaves the selector: its previous content under the new version
			e.typ, e.item = watch.Deleted, prev
		default:
			continue
		}
		v.events = append(v.events, e)
	}
	return v
}

func apply(state map[string]client.Item, typ watch.EventType, it client.Item) {
	if typ == watch.Deleted {
		delete(state, it.Key)
		return
	}
	state[it.Key] = it
}
