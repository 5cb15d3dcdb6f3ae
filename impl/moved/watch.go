package moved

import (
	"iter"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Watch is one watch of a client: it makes of the events of a relay what the client is shown. Begin or Resume is called
// first. It is not safe for concurrent use.
type Watch struct {
	view      *View
	selects   func(*wire.Object) bool // what the client asked for
	bookmarks bool                    // the client takes them

	at      uint64 // all up to this version was shown
	ahead   uint64 // up to here the client has seen more elsewhere; 0: it has not
	initial bool   // its list is under way,
	last    string // up to this key
	has     map[string]sight
	astray  bool // the last event has not the version that the client may resume from
	out     []wire.Event
}

// NewWatch makes the watch of a client that selects some objects, and takes bookmarks or not.
func NewWatch(v *View, selects func(*wire.Object) bool, bookmarks bool) *Watch {
	return &Watch{view: v, selects: selects, bookmarks: bookmarks, has: map[string]sight{}}
}

// Begin is for a watch that starts with all objects, as they were at a version, in the order of their keys.
func (w *Watch) Begin(version uint64) { w.at, w.initial = version, true }

// Resume is for a watch that goes on behind a version, 0: behind what the relay has reached. objects are those that the
// relay holds now. What is returned is shown before all else.
func (w *Watch) Resume(version, reached uint64, objects iter.Seq[*wire.Object]) []wire.Event {
	if version == 0 {
		version = reached
	}
	if w.at = min(version, reached); version > reached {
		w.ahead = version
	}
	for o := range objects {
		if !w.selects(o) || o.Version > version { // its event is still to come
			continue
		}
		if s, is := w.view.show(o, sight{}); is.content != 0 || w.view.owes(o) {
			w.give(wire.Modified, s, is)
		}
	}
	return w.flush()
}

// Step takes the next events of the relay, which are those behind the lower of the version of Resume and what the relay
// had reached then.
func (w *Watch) Step(events ...wire.Event) []wire.Event {
	for _, ev := range events {
		switch {
		case ev.Type == wire.Bookmark:
			if ev.InitialEnd {
				w.End()
			}
			untouched := w.ahead > ev.Version && len(w.has) == 0 // then the client is still ahead
			if w.reach(ev.Version); !untouched {
				w.astray = false
				w.out = append(w.out, ev)
			}
		case ev.Object == nil:
			w.out = append(w.out, ev)
		case w.initial:
			w.last = ev.Object.Key
			s, is := w.view.show(ev.Object, sight{})
			w.give(ev.Type, s, is)
		default:
			w.event(ev)
		}
	}
	return w.flush()
}

// Plain reports whether the client has nothing that differs from what the relay gives it.
func (w *Watch) Plain() bool { return !w.initial && w.ahead == 0 && len(w.has) == 0 }

// End is for the end of the objects that the watch starts with. The bookmark that says so is one, too.
func (w *Watch) End() { w.initial = false }

// reach notes that all up to a version was shown.
func (w *Watch) reach(version uint64) {
	w.at = max(w.at, version)
	if w.at >= w.ahead {
		w.ahead = 0
	}
}

// event shows one change.
func (w *Watch) event(ev wire.Event) {
	key := ev.Object.Key
	had, touched := w.has[key]
	seen := ev.Version <= w.ahead // the client has this or later, unless it was shown an earlier form here
	w.reach(ev.Version)
	if ev.Type == wire.Deleted {
		if seen && !touched {
			return
		}
		if delete(w.has, key); seen { // what the client had of a later one went with it
			w.has[key] = sight{}
		}
		w.astray = ev.Version != w.at
		w.out = append(w.out, ev)
		return
	}
	s, is := w.view.show(ev.Object, had)
	switch {
	case seen && !touched && is.content == 0:
		return
	case seen && !touched:
		ev.Type = wire.Modified
	}
	w.give(ev.Type, s, is)
}

// Changed is called when corrections have changed. objects are those that the relay holds now.
func (w *Watch) Changed(objects iter.Seq[*wire.Object]) []wire.Event {
	for o := range objects {
		if !w.selects(o) || o.Version > w.at || w.initial && o.Key > w.last {
			continue
		}
		had, touched := w.has[o.Key]
		if !touched {
			had = sight{o.Version, 0}
		}
		if s, is := w.view.show(o, had); is != had {
			w.give(wire.Modified, s, is)
		}
	}
	return w.flush()
}

// give shows an object in a form.
func (w *Watch) give(typ string, o *wire.Object, is sight) {
	if is.content != 0 || w.ahead > 0 {
		w.has[o.Key] = is
	} else {
		delete(w.has, o.Key)
	}
	w.astray = o.Version != w.at
	w.out = append(w.out, wire.Event{Type: typ, Version: o.Version, Object: o})
}

// flush ends with a bookmark if the client is not where it may resume from.
func (w *Watch) flush() []wire.Event {
	if w.astray && w.bookmarks && !w.initial {
		w.astray = false
		w.out = append(w.out, wire.Event{Type: wire.Bookmark, Version: w.at})
	}
	out := w.out
	w.out = nil
	return out
}
