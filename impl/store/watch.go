package store

import (
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Watching records a watch that goes on from a list, or that begins with one (a streaming list).
type Watching struct {
	s       *Store
	c       *collection
	kind    wire.Kind
	initial *recording // a streaming list that has not ended; else nil
	closed  bool
}

// Watch begins to record a watch that a client resumes at a version; 0 if it names none. streaming: it begins with all
// objects, up to a bookmark that says so. A zero kind is that of the events.
//
// If the store does not cover the version, it misses what happened before the watch: it was killed before it wrote
// that, or never had it. Then what it has of the collection is no complete list any more, until one is recorded.
func (s *Store) Watch(shape Shape, kind wire.Kind, from uint64, streaming bool) (*Watching, error) {
	if err := shape.validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collectionOf(shape)
	s.ask(c)
	w := &Watching{s: s, c: c}
	w.of(kind)
	switch {
	case streaming:
		w.initial = s.recordings.begin(shape)
	case c.complete && !s.covers(c, from):
		c.complete = false
		s.dirty[c] = true
	}
	c.watches++
	return w, nil
}

// Covers reports whether a watch from a version on can be recorded without a gap: the collection is complete, and
// reaches it.
func (s *Store) Covers(shape Shape, from uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.collections[shape.encode()]
	return c != nil && c.complete && s.covers(c, from)
}

func (s *Store) covers(c *collection, from uint64) bool {
	return from <= c.version && c.epoch == s.epoch
}

// of takes the kind of the events, if it is told.
func (w *Watching) of(kind wire.Kind) {
	if kind == (wire.Kind{}) {
		kind = w.c.kind
	}
	w.kind = kind
	if w.c.kind != kind {
		w.c.kind = kind
		w.s.dirty[w.c] = true
	}
}

// Gap says that events were missed: what the store has of the collection is no complete list any more, until one is
// recorded.
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
	if s.crowded(c.Component) { // the event is missed
		if c.complete = false; w.initial != nil {
			w.initial.left = true
		}
		s.dirty[c] = true
		return
	}
	if ev.Kind != (wire.Kind{}) && ev.Kind != w.kind {
		w.of(ev.Kind)
	}
	switch ev.Type {
	case wire.Added, wire.Modified:
		k := s.show(c.Resource, c.Form, w.kind, ev.Object)
		switch {
		case w.initial != nil:
			w.initial.keys[k] = true
			return
		case w.news(ev.Version):
			s.setMember(c, k, true)
		}
	case wire.Deleted:
		k := Key{ev.Object.Namespace, ev.Object.Name}
		if w.initial != nil {
			delete(w.initial.keys, k)
		} else if w.news(ev.Version) {
			s.setMember(c, k, false)
		}
		s.leave(c.Resource, k, s.absence(c), ev.Version)
	case wire.Bookmark:
		if ev.InitialEnd && w.initial != nil {
			if !w.initial.left {
				s.commit(c, w.kind, ev.Version, w.initial.keys)
			}
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

// news reports whether an event is about a state that the members do not show yet.
func (w *Watching) news(version uint64) bool {
	return !w.c.complete || version > w.c.version || w.c.epoch != w.s.epoch
}

func (w *Watching) initialDone() {
	if w.initial != nil {
		w.s.recordings.end(w.initial)
		w.initial = nil
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
