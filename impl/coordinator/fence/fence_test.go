package fence

import (
	"errors"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
)

func term(v uint64) contract.Term { return contract.Term{Incarnation: "now", Version: v} }

// act is one thing that happens to a fence, and what is wanted of it: the reason of a refusal, "" for none.
type act struct {
	observe, follow, first Sighting
	open, admit            contract.Term
	node                   string
	want                   string
	moved                  bool // the fence told that it moved
}

func TestFence(t *testing.T) {
	for name, acts := range map[string][]act{
		"nobody leads": {
			{open: term(5), node: "a", want: "holder"},
			{observe: Sighting{5, ""}},
			{open: term(5), node: "a", want: "holder"},
			{open: term(5), node: "", want: "holder"},
		},
		"the holder feeds, from the write that made it one": {
			{observe: Sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a", moved: true},
			{admit: term(5), node: "a"},
			{observe: Sighting{9, "a_1"}},
			{admit: term(5), node: "a"},
			{open: term(5), node: "a"}, // once more, after a break
		},
		"nobody else feeds": {
			{observe: Sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "b", want: "holder"},
			{open: term(5), node: "", want: "holder"},
		},
		"no term of the future": {
			{observe: Sighting{5, "a_1"}, moved: true},
			{open: term(6), node: "a", want: "term"},
			{open: term(5), node: "a", moved: true}, // and it has not raised the floor
		},
		"no term of another life": {
			{observe: Sighting{5, "a_1"}, moved: true},
			{open: contract.Term{Incarnation: "then", Version: 5}, node: "a", want: "incarnation"},
		},
		"a lost Lease fences": {
			{observe: Sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a", moved: true},
			{observe: Sighting{7, "b_1"}, moved: true},
			{admit: term(5), node: "a", want: "holder"},
			{open: term(7), node: "b", moved: true},
		},
		"a released Lease fences": {
			{observe: Sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a", moved: true},
			{observe: Sighting{7, ""}, moved: true},
			{admit: term(5), node: "a", want: "holder"},
		},
		"a Lease won back needs a new term": {
			{first: Sighting{1, ""}},
			{follow: Sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a"},
			{follow: Sighting{7, "b_1"}, moved: true},
			{follow: Sighting{8, "a_1"}, moved: true},
			{admit: term(5), node: "a", want: "term"},
			{open: term(8), node: "a"},
		},
		"another process of the same node begins a term": {
			{first: Sighting{1, ""}},
			{follow: Sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a"},
			{follow: Sighting{7, "a_2"}, moved: true},
			{admit: term(5), node: "a", want: "term"},
		},
		"it does so by feeding, too, where the watch has a gap": {
			{first: Sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a", moved: true},
			{first: Sighting{9, "a_2"}, moved: true},
			{admit: term(5), node: "a"}, // a_2 may have won at any version behind 5
			{open: term(7), node: "a", moved: true},
			{admit: term(5), node: "a", want: "term"},
		},
		"a late Sighting changes nothing": {
			{observe: Sighting{5, "a_1"}, moved: true},
			{observe: Sighting{7, "b_1"}, moved: true},
			{observe: Sighting{6, "a_1"}},
			{admit: term(5), node: "a", want: "holder"},
			{open: term(7), node: "b", moved: true},
		},
		"the watch behind a write still tells where the term began": {
			{first: Sighting{5, "a_1"}, moved: true},
			{observe: Sighting{7, "b_1"}, moved: true},
			{observe: Sighting{9, "b_1"}}, // a renewal, seen before the watch shows the acquisition
			{follow: Sighting{7, "b_1"}, moved: true},
			{follow: Sighting{9, "b_1"}},
			{open: term(6), node: "b", want: "term"},
			{open: term(7), node: "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			moves := 0
			f := &Fence{Incarnation: "now", Moved: func() { moves++ }}
			for i, a := range acts {
				before := moves
				var err error
				none := Sighting{}
				switch {
				case a.observe != none:
					f.Observe(a.observe)
				case a.first != none:
					f.Follow(a.first, true)
				case a.follow != none:
					f.Follow(a.follow, false)
				case a.open != contract.Term{}:
					err = f.Open(a.open, a.node)
				default:
					err = f.Admit(a.admit, a.node)
				}
				got := ""
				if r := (*RefusedError)(nil); errors.As(err, &r) {
					got = r.Reason
				}
				if got != a.want || (moves > before) != a.moved {
					t.Fatalf("act %d %+v: refused for %q (%v), moved %v", i+1, a, got, err, moves > before)
				}
			}
		})
	}
}
