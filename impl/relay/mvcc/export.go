package mvcc

import (
	"iter"
	"slices"

	"github.com/google/btree"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Export is the content of a State at one moment: the objects at the oldest version from which a watch can resume, and
// all changes from there to the version reached. It holds the objects themselves, not copies.
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

// Objects returns how many objects there were at version From, and a walk over them in the order of their keys. It must
// be called once: it reverts the changes in the export's own copy of the tree.
func (x *Export) Objects() (n int, walk iter.Seq[*wire.Object]) {
	undo(x.tree, x.events)
	return x.tree.Len(), func(yield func(*wire.Object) bool) { x.tree.Ascend(yield) }
}

// Changes are those from version From to To. A batch ends with a bookmark, and only there is the state one that a
// client may see.
func (x *Export) Changes() []*Event { return x.events }
