package relay

import (
	"iter"

	"github.com/google/btree"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Change is one step of a relay's history, in the form in which it leaves the relay and can be brought back (Restoration).
type Change struct {
	Kind    ChangeKind
	Version uint64       // reached by it; a deletion of a batch has the version that the batch starts from
	Object  *wire.Object // nil for Reached
	// From and To are the ends of the batch (rule 6) that the change belongs to; 0, 0 outside of one. A batch ends with a
	// Reached at To, and only there is the relay in a state that a client may see.
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

func changeOf(e *event) Change {
	c := Change{Kind: Put, Version: e.version, Object: e.cur}
	switch {
	case e.cur == nil:
		c.Kind = Reached
	case e.deleted:
		c.Kind = Delete
	}
	if e.batch != nil {
		c.From, c.To = e.batch.from, e.batch.to
	}
	return c
}

// Export is the content of a relay at one moment: its state at the oldest version from which a watch can resume, and all
// changes from there to the version reached. It holds the objects of the relay, not copies.
type Export struct {
	From uint64 // version of the objects
	To   uint64 // version after the changes
	Next Place  // of the changes that follow
	// History is that of the versions.
	History History

	tree   *btree.BTreeG[*wire.Object]
	events []*event
}

// Export takes the content of the relay. The lock is held for as long as it takes to copy one pointer per event of the ring.
// ok is false before the first list.
func (r *Relay) Export() (x *Export, ok bool) {
	r.mu.Lock() // Clone marks the tree as shared
	defer r.mu.Unlock()
	if !r.synced {
		return nil, false
	}
	x = &Export{From: r.ring.floor, To: r.version, tree: r.tree.Clone(), Next: Place{r, r.ring.next(), r.epoch}, History: r.history}
	seq, _ := r.ring.from(r.ring.floor) // not base: of a batch that the ring has passed in part, the rest explains nothing
	x.events = append([]*event(nil), r.ring.events[seq-r.ring.base:]...)
	return x, true
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

// Objects walks over the objects that the relay holds now, in the order of their keys.
func (r *Relay) Objects() iter.Seq[*wire.Object] {
	tree := r.now().tree
	return func(yield func(*wire.Object) bool) { tree.AscendGreaterOrEqual(&wire.Object{}, yield) }
}

// Place is one in a relay's history. It is a value: one that was read from may be read from again.
type Place struct {
	r     *Relay
	seq   uint64
	epoch uint64
}

// Place is that behind the version reached.
func (r *Relay) Place() Place {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Place{r, r.ring.next(), r.epoch}
}

// Read appends at most n changes behind the place to dst, and returns the place behind those. ok is false if they cannot be
// had: the ring has passed it, or the history was thrown away. Then only a new Export tells what the relay holds.
func (p Place) Read(dst []Change, n int) (changes []Change, next Place, ok bool) {
	p.r.mu.RLock()
	defer p.r.mu.RUnlock()
	events, ok := p.r.ring.since(nil, p.seq, n)
	if !ok || p.epoch != p.r.epoch {
		return dst, p, false
	}
	for _, e := range events {
		dst = append(dst, changeOf(e))
	}
	p.seq += uint64(len(events))
	return dst, p, true
}

// undo takes events back, the last one first.
func undo(tree *btree.BTreeG[*wire.Object], events []*event) {
	for i := len(events) - 1; i >= 0; i-- {
		switch e := events[i]; {
		case e.cur == nil:
		case e.prev != nil:
			tree.ReplaceOrInsert(e.prev)
		default:
			tree.Delete(e.cur)
		}
	}
}
