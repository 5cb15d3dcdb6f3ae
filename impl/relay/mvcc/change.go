package mvcc

import (
	"iter"
	"slices"

	"github.com/google/btree"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Change is one change in the form in which it leaves a State and can be brought back (Restoration).
type Change struct {
	Kind    ChangeKind
	Version uint64       // reached by it; a deletion of a batch has the version that the batch starts from
	Object  *wire.Object // nil for Reached
	// From and To are the ends of the batch (rule 6) that the change belongs to; 0, 0 outside of one. A batch ends with a
	// Reached at To, and only there is the state one that a client may see.
	From, To uint64
}

// ChangeKind tells what a Change does.
type ChangeKind uint8

// The kinds of changes.
const (
	Put     ChangeKind = iota + 1 // Object exists in this form now
	Delete                        // Object, in its last form, is gone
	Reached                       // nothing but the version changes
)

func changeOf(e *Event) Change {
	c := Change{Kind: Put, Version: e.Version, Object: e.Cur}
	switch {
	case e.Cur == nil:
		c.Kind = Reached
	case e.Deleted:
		c.Kind = Delete
	}
	if e.Batch != nil {
		c.From, c.To = e.Batch.From, e.Batch.To
	}
	return c
}

// Export is the content of a State at one moment: the objects at the oldest version from which a watch can resume, and all
// changes from there to the version reached. It holds the objects themselves, not copies.
type Export struct {
	From uint64 // version of the objects
	To   uint64 // version after the changes

	tree   *btree.BTreeG[*wire.Object]
	events []*Event
}

// Export takes the content. It copies one pointer per event of the ring.
func (s *State) Export() *Export {
	seq, _ := s.From(s.floor) // not base: of a batch that the ring has passed in part, the rest explains nothing
	return &Export{From: s.floor, To: s.version, tree: s.tree.Clone(), events: slices.Clone(s.events[seq-s.base:])}
}

// Objects returns how many objects there were at version From, and a walk over them in the order of their keys. It must be
// called once: it takes back the changes in the export's own copy of the tree.
func (x *Export) Objects() (n int, walk iter.Seq[*wire.Object]) {
	undo(x.tree, x.events)
	return x.tree.Len(), func(yield func(*wire.Object) bool) { x.tree.Ascend(yield) }
}

// Changes walks over the changes from version From to To.
func (x *Export) Changes() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for _, e := range x.events {
			if !yield(changeOf(e)) {
				return
			}
		}
	}
}

// Place is one behind an event. It is a value: one that was read from may be read from again.
type Place struct{ Seq, Epoch uint64 }

// Place is that behind the version reached.
func (s *State) Place() Place { return Place{s.Next(), s.epoch} }

// Changes appends at most n changes behind a place to dst, and returns the place behind those. ok is false if they cannot be
// had: the ring has passed it, or what it was of was thrown away. Then only a new Export tells what there is.
func (s *State) Changes(dst []Change, p Place, n int) (changes []Change, next Place, ok bool) {
	events, ok := s.Since(nil, p.Seq, n)
	if !ok || p.Epoch != s.epoch {
		return dst, p, false
	}
	for _, e := range events {
		dst = append(dst, changeOf(e))
	}
	p.Seq += uint64(len(events))
	return dst, p, true
}

// undo takes events back, the last one first.
func undo(tree *btree.BTreeG[*wire.Object], events []*Event) {
	for i := len(events) - 1; i >= 0; i-- {
		switch e := events[i]; {
		case e.Cur == nil:
		case e.Prev != nil:
			tree.ReplaceOrInsert(e.Prev)
		default:
			tree.Delete(e.Cur)
		}
	}
}
