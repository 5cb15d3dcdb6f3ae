package mvcc

import (
	"fmt"
	"time"

	"github.com/google/btree"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// State is the objects at the version reached, and the last changes that led there.
type State struct {
	ring
	enc     wire.Encoding
	version uint64
	epoch   uint64
	tree    *btree.BTreeG[*wire.Object]
	bytes   int64 // of all objects in tree
}

// New is a State of nothing.
func New(enc wire.Encoding) State { return State{enc: enc, tree: newTree()} }

func newTree() *btree.BTreeG[*wire.Object] {
	return btree.NewG(32, func(a, b *wire.Object) bool { return a.Key < b.Key })
}

// Version is what is reached.
func (s *State) Version() uint64 { return s.version }

// Epoch grows when everything is thrown away.
func (s *State) Epoch() uint64 { return s.epoch }

// Len is the number of objects.
func (s *State) Len() int { return s.tree.Len() }

// Bytes are those of all objects.
func (s *State) Bytes() int64 { return s.bytes }

// Get gives the object with the key of another one, nil if there is none.
func (s *State) Get(like *wire.Object) *wire.Object {
	o, _ := s.tree.Get(like)
	return o
}

// set stores an object, and returns the one before.
func (s *State) set(o *wire.Object) (old *wire.Object) {
	old, replaced := s.tree.ReplaceOrInsert(o)
	if replaced {
		s.bytes -= int64(len(old.Raw))
	}
	s.bytes += int64(len(o.Raw))
	return old
}

// remove removes an object, and returns it.
func (s *State) remove(o *wire.Object) (old *wire.Object) {
	old, have := s.tree.Delete(o)
	if have {
		s.bytes -= int64(len(old.Raw))
	}
	return old
}

// Load throws everything away for a list.
func (s *State) Load(version uint64, items []*wire.Object) {
	s.tree, s.bytes = newTree(), 0
	for _, o := range items {
		s.set(o)
	}
	s.epoch++
	s.version = version
	s.reset(version)
}

// Adopt throws everything away for another State.
func (s *State) Adopt(o State) {
	o.epoch = s.epoch + 1
	*s = o
}

// Bookmark takes a version at which nothing changed. Each has a place in the ring, so that watchers see it.
func (s *State) Bookmark(version uint64, at time.Time) {
	s.version = version
	s.push(&Event{Version: version, at: at})
}

// Apply takes a change of an object that leads to a later version.
func (s *State) Apply(in *wire.Event, at time.Time) error {
	e := &Event{Version: in.Version, Cur: in.Object, at: at}
	switch in.Type {
	case wire.Added, wire.Modified:
		e.Prev = s.set(in.Object)
	case wire.Deleted:
		e.Prev, e.Deleted = s.remove(in.Object), true
		if e.Prev == nil {
			s.Bookmark(in.Version, at)
			return nil
		}
	default:
		return fmt.Errorf("event type %q cannot be applied", in.Type)
	}
	if e.Type() == in.Type && len(in.Frame) > 0 {
		e.frame.Store(&in.Frame)
	}
	s.push(e)
	s.version = in.Version
	return nil
}

// Replace takes a list of a later version, as one batch of changes. trail is what is known of the way there; nil:
// nothing. ok is false if no watch could lead there: then only Load takes the list.
func (s *State) Replace(version uint64, items []*wire.Object, trail *Trail, at time.Time) (ok bool, err error) {
	gone, changed, ok := s.diff(version, items)
	if !ok {
		return false, nil
	}
	b := &Batch{From: s.version, To: version}
	return true, s.follow(b, trail.along(b, gone, changed, s.Get), at)
}

// Follow takes a whole batch that somebody else made.
func (s *State) Follow(b *Batch, events []*wire.Event, at time.Time) error {
	steps := stepsOf(events)
	inOrder(steps)
	return s.follow(b, steps, at)
}

func (s *State) follow(b *Batch, steps []step, at time.Time) error {
	for _, x := range steps {
		e := &Event{Version: x.version, Cur: x.o, Batch: b, Deleted: x.gone, at: at}
		if !x.gone {
			e.Prev = s.set(x.o)
		} else if e.Prev = s.remove(x.o); e.Prev == nil {
			continue
		}
		if x.gone {
			var err error
			if e.Cur, err = e.Prev.WithVersion(s.enc, x.version); err != nil {
				return err
			}
		}
		s.push(e)
	}
	s.push(&Event{Version: b.To, Batch: b, at: at})
	s.version = b.To
	return nil
}

// diff compares the state with a newer list: what is gone, and what is new or changed.
// ok is false if no watch could lead from the state to the list.
func (s *State) diff(version uint64, items []*wire.Object) (gone, changed []*wire.Object, ok bool) {
	listed := make(map[string]*wire.Object, len(items))
	for _, o := range items {
		listed[o.Key] = o
		old := s.Get(o)
		switch {
		case o.Version > version:
			return nil, nil, false
		case old != nil && old.UID == o.UID && old.Version == o.Version:
			continue
		case o.Version <= s.version: // changed, but not since the state we hold
			return nil, nil, false
		}
		changed = append(changed, o)
	}
	s.tree.Ascend(func(old *wire.Object) bool {
		if o := listed[old.Key]; o == nil || o.UID != old.UID {
			gone = append(gone, old)
		}
		return true
	})
	return gone, changed, true
}

// Unclear names the objects of which more has to be told before a trail explains a list at a version, and the last
// version of each, 0 if it is deleted. ok is false if nothing will.
func (s *State) Unclear(t *Trail, version uint64, items []*wire.Object) (unclear map[string]uint64, ok bool) {
	if version <= s.version {
		return nil, false
	}
	gone, changed, ok := s.diff(version, items)
	if !ok {
		return nil, false
	}
	_, unclear, ok = t.date(&Batch{From: s.version, To: version}, gone, changed, s.Get)
	return unclear, ok
}
