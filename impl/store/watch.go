package store

import (
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Watching records a watch that goes on from a list, or that begins with one (a streaming list).
type Watching struct {
	s       *Store
	c       *collection
	kind    wire.Kind
	from    uint64
	initial map[Key]bool // of a streaming list that has not ended; else nil
	closed  bool
}

// Watch begins to record a watch that a client resumes at a version; 0 if it names none. streaming: it begins with all objects, up
// to a bookmark that says so.
func (s *Store) Watch(shape Shape, kind wire.Kind, from uint64, streaming bool) (*Watching, error) {
	if err := shape.validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collectionOf(shape)
	s.ask(c)
	if c.kind != kind {
		c.kind = kind
		s.dirty[c] = true
	}
	w := &Watching{s: s, c: c, kind: kind, from: from}
	switch {
	case streaming:
		w.initial = map[Key]bool{}
		s.listings++
	case c.complete && from > c.version && c.epoch == s.epoch:
		w.from = c.version
	}
	c.watches++
	return w, nil
}

// From is the version at which the cloud should be asked to go on. It is below the client's if the client has seen events
// that this store has not: a hub that was killed loses what it had not written yet. Events up to the client's version are
// for the store alone then. If the cloud has no events from there on any more, call Gap.
func (w *Watching) From() uint64 { return w.from }

// Gap says that the watch begins at the client's version after all: what the store has of the collection is no
// complete list any more, until one is recorded.
func (w *Watching) Gap() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.c.complete = false
	w.s.dirty[w.c] = true
}

// Event records an event.
func (w *Watching) Event(ev *wire.Event) {
	s, c := w.s, w.c
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.bound()
	if s.collections[c.key] != c { // it was dropped, to make room
		s.index(c)
	}
	switch ev.Type {
	case wire.Added, wire.Modified:
		k := s.show(c.Resource, c.Form, w.kind, ev.Object)
		switch {
		case w.initial != nil:
			w.initial[k] = true
			return
		case w.news(ev.Version):
			s.setMember(c, k, true)
		}
	case wire.Deleted:
		k := Key{ev.Object.Namespace, ev.Object.Name}
		if w.initial != nil {
			delete(w.initial, k)
		} else if w.news(ev.Version) {
			s.setMember(c, k, false)
		}
		s.leave(c.Resource, k, s.absence(c), ev.Version)
	case wire.Bookmark:
		if ev.InitialEnd && w.initial != nil {
			s.commit(c, w.kind, ev.Version, w.initial)
			w.initialDone()
		}
	default:
		return
	}
	if w.initial == nil && ev.Version > c.version {
		// A bookmark alone is not worth a write: a watch from an older version gets some events twice.
		if c.version = ev.Version; ev.Type != wire.Bookmark {
			s.dirty[c] = true
		}
	}
}

// news tells whether an event is about a state that the members do not show yet.
func (w *Watching) news(version uint64) bool {
	return !w.c.complete || version > w.c.version || w.c.epoch != w.s.epoch
}

func (w *Watching) initialDone() {
	if w.initial != nil {
		w.initial = nil
		w.s.listings--
	}
}

// Close says that the watch has ended. What it has shown counts as of when the cloud was last reached.
func (w *Watching) Close() {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	w.initialDone()
	w.c.asOf = s.asOf(w.c)
	w.c.watches--
	w.c.asked = s.Clock.Now()
	s.dirty[w.c] = true
}
