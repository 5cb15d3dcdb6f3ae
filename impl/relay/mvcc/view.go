package mvcc

import (
	"cmp"
	"slices"
	"sort"

	"github.com/google/btree"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Place is one behind an event. It is a value: one that was read from may be read from again.
type Place struct{ Seq, Epoch uint64 }

// Place is that behind the version reached.
func (s *State) Place() Place { return Place{s.Next(), s.epoch} }

// Since appends at most n events behind a place to dst. ok is false if they cannot be had: the ring has passed it, or
// what it was of was thrown away. It copies, because Trim clears what it drops.
func (s *State) Since(dst []*Event, p Place, n int) (events []*Event, ok bool) {
	if p.Seq < s.base || p.Epoch != s.epoch {
		return dst, false
	}
	tail := s.events[min(p.Seq-s.base, uint64(len(s.events))):]
	return append(dst, tail[:min(len(tail), n)]...), true
}

// View is a consistent state at one version, and the place of what follows it.
type View struct {
	Place
	Version uint64
	Objects Objects
}

// Objects are in the order of their keys: a tree or, if nothing changes, a slice.
type Objects interface {
	Len() int
	Get(like *wire.Object) (*wire.Object, bool)
	AscendGreaterOrEqual(from *wire.Object, visit btree.ItemIteratorG[*wire.Object])
}

// Now is the state at the version reached.
func (s *State) Now() View { return View{s.Place(), s.version, s.tree.Clone()} }

// At is the state at an earlier version, by undoing the events since. ok is false if the ring does not reach back.
func (s *State) At(version uint64) (v View, ok bool) {
	seq, ok := s.From(version)
	if !ok || version > s.version || s.Inside(seq, version) {
		return View{}, false
	}
	tree := s.tree.Clone()
	undo(tree, s.events[seq-s.base:])
	return View{Place{seq, s.epoch}, version, tree}, true
}

// Past is the state at the oldest version from which a watch can resume.
func (s *State) Past() View {
	v, _ := s.At(s.floor)
	return v
}

// undo removes events, the last one first.
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

// sorted are objects in a slice.
type sorted []*wire.Object

// Sorted puts objects in order.
func Sorted(items []*wire.Object) Objects {
	slices.SortFunc(items, func(a, b *wire.Object) int { return cmp.Compare(a.Key, b.Key) })
	return sorted(items)
}

func (o sorted) Len() int { return len(o) }

func (o sorted) from(key string) int {
	return sort.Search(len(o), func(i int) bool { return o[i].Key >= key })
}

func (o sorted) Get(like *wire.Object) (*wire.Object, bool) {
	if i := o.from(like.Key); i < len(o) && o[i].Key == like.Key {
		return o[i], true
	}
	return nil, false
}

func (o sorted) AscendGreaterOrEqual(from *wire.Object, visit btree.ItemIteratorG[*wire.Object]) {
	for _, x := range o[o.from(from.Key):] {
		if !visit(x) {
			return
		}
	}
}
