package coordinator

import (
	"errors"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
)

func term(v uint64) contract.Term { return contract.Term{Incarnation: "now", Version: v} }

// act is one thing that happens to a fence, and what is wanted of it: the reason of a refusal, "" for none.
type act struct {
	observe, follow, first sighting
	open, admit            contract.Term
	node                   string
	want                   string
	moved                  bool // the fence told that it moved
}

func TestFence(t *testing.T) {
	for name, acts := range map[string][]act{
		"nobody leads": {
			{open: term(5), node: "a", want: "holder"},
			{observe: sighting{5, ""}},
			{open: term(5), node: "a", want: "holder"},
		},
		"the holder feeds, from the write that made it one": {
			{observe: sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a", moved: true},
			{admit: term(5), node: "a"},
			{observe: sighting{9, "a_1"}},
			{admit: term(5), node: "a"},
			{open: term(5), node: "a"}, // once more, after a break
		},
		"nobody else feeds": {
			{observe: sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "b", want: "holder"},
			{open: term(5), node: "", want: "holder"},
		},
		"no term of the future": {
			{observe: sighting{5, "a_1"}, moved: true},
			{open: term(6), node: "a", want: "term"},
			{open: term(5), node: "a", moved: true}, // and it has not raised the floor
		},
		"no term of another life": {
			{observe: sighting{5, "a_1"}, moved: true},
			{open: contract.Term{Incarnation: "then", Version: 5}, node: "a", want: "incarnation"},
		},
		"a lost Lease fences": {
			{observe: sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a", moved: true},
			{observe: sighting{7, "b_1"}, moved: true},
			{admit: term(5), node: "a", want: "holder"},
			{open: term(7), node: "b", moved: true},
		},
		"a released Lease fences": {
			{observe: sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a", moved: true},
			{observe: sighting{7, ""}, moved: true},
			{admit: term(5), node: "a", want: "holder"},
		},
		"a Lease won back needs a new term": {
			{first: sighting{1, ""}},
			{follow: sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a"},
			{follow: sighting{7, "b_1"}, moved: true},
			{follow: sighting{8, "a_1"}, moved: true},
			{admit: term(5), node: "a", want: "term"},
			{open: term(8), node: "a"},
		},
		"another process of the same node begins a term": {
			{first: sighting{1, ""}},
			{follow: sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a"},
			{follow: sighting{7, "a_2"}, moved: true},
			{admit: term(5), node: "a", want: "term"},
		},
		"it does so by feeding, too, where the watch has a gap": {
			{first: sighting{5, "a_1"}, moved: true},
			{open: term(5), node: "a", moved: true},
			{first: sighting{9, "a_2"}, moved: true},
			{admit: term(5), node: "a"}, // a_2 may have won at any version behind 5
			{open: term(7), node: "a", moved: true},
			{admit: term(5), node: "a", want: "term"},
		},
		"a late sighting changes nothing": {
			{observe: sighting{5, "a_1"}, moved: true},
			{observe: sighting{7, "b_1"}, moved: true},
			{observe: sighting{6, "a_1"}},
			{admit: term(5), node: "a", want: "holder"},
			{open: term(7), node: "b", moved: true},
		},
		"the watch behind a write still tells where the term began": {
			{first: sighting{5, "a_1"}, moved: true},
			{observe: sighting{7, "b_1"}, moved: true},
			{observe: sighting{9, "b_1"}}, // a renewal, seen before the watch shows the acquisition
			{follow: sighting{7, "b_1"}, moved: true},
			{follow: sighting{9, "b_1"}},
			{open: term(6), node: "b", want: "term"},
			{open: term(7), node: "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			moves := 0
			f := &fence{incarnation: "now", moved: func() { moves++ }}
			for i, a := range acts {
				before := moves
				var err error
				none := sighting{}
				switch {
				case a.observe != none:
					f.observe(a.observe)
				case a.first != none:
					f.follow(a.first, true)
				case a.follow != none:
					f.follow(a.follow, false)
				case a.open != contract.Term{}:
					err = f.open(a.open, a.node)
				default:
					err = f.admit(a.admit, a.node)
				}
				got := ""
				if r := (*refusal)(nil); errors.As(err, &r) {
					got = r.reason
				}
				if got != a.want || (moves > before) != a.moved {
					t.Fatalf("act %d %+v: refused for %q (%v), moved %v", i+1, a, got, err, moves > before)
				}
			}
		})
	}
}
