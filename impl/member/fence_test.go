package member

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
)

func leader(node string, v uint64) Leader {
	return Leader{node, "", contract.Term{Incarnation: "now", Version: v}}
}

// act is one thing that happens to a fence, and what is wanted of it.
type act struct {
	observe, follow, first Sighting
	leads                  Leader // afterwards
	moved                  bool   // the fence told that it moved
	admit                  Leader // instead: whether what comes from it counts, and if not, why
	want                   string
}

func TestFence(t *testing.T) {
	a5, b7 := leader("a", 5), leader("b", 7)
	for name, acts := range map[string][]act{
		"nobody leads": {
			{admit: a5, want: "nobody holds"},
			{observe: Sighting{Version: 5}},
			{admit: a5, want: "nobody holds"},
			{admit: leader("", 5), want: "nobody holds"},
		},
		"the holder is read, from the write that made it one": {
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{admit: a5},
			{observe: Sighting{9, "a_1", ""}, leads: a5},
			{admit: a5},
		},
		"nobody else is read": {
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{admit: leader("b", 5), want: "node a holds"},
			{admit: leader("", 5), want: "node a holds"},
		},
		"no term of the future": {
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{admit: leader("a", 6), want: "is over"},
			{admit: a5},
		},
		"no term of another life": {
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{admit: Leader{"a", "", contract.Term{Incarnation: "then", Version: 5}}, want: "is over"},
		},
		"a lost Lease fences": {
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{observe: Sighting{7, "b_1", ""}, leads: b7, moved: true},
			{admit: a5, want: "node b holds"},
			{admit: b7},
		},
		"a released Lease fences": {
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{observe: Sighting{7, "", ""}, moved: true},
			{admit: a5, want: "nobody holds"},
		},
		"a Lease won back is a new term": {
			{first: Sighting{Version: 1}},
			{follow: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{follow: Sighting{7, "b_1", ""}, leads: b7, moved: true},
			{follow: Sighting{8, "a_1", ""}, leads: leader("a", 8), moved: true},
			{admit: a5, want: "is over"},
			{admit: leader("a", 8)},
		},
		"also if only the watch shows that it was lost": {
			{first: Sighting{Version: 1}},
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{observe: Sighting{9, "a_1", ""}, leads: a5},
			{follow: Sighting{5, "a_1", ""}, leads: a5},
			{follow: Sighting{7, "b_1", ""}, leads: leader("a", 7), moved: true},
			{admit: a5, want: "is over"},
			{follow: Sighting{8, "a_1", ""}, leads: leader("a", 8), moved: true},
			{follow: Sighting{9, "a_1", ""}, leads: leader("a", 8)},
			{admit: leader("a", 8)},
		},
		"and if it was given back": {
			{first: Sighting{Version: 1}},
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{observe: Sighting{9, "a_1", ""}, leads: a5},
			{follow: Sighting{5, "a_1", ""}, leads: a5},
			{follow: Sighting{7, "", ""}, leads: leader("a", 7), moved: true},
			{follow: Sighting{8, "a_1", ""}, leads: leader("a", 8), moved: true},
			{admit: a5, want: "is over"},
		},
		"another process of the same node begins a term": {
			{first: Sighting{Version: 1}},
			{follow: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{follow: Sighting{7, "a_2", ""}, leads: leader("a", 7), moved: true},
			{admit: a5, want: "is over"},
		},
		"it does so, too, where the watch has a gap": {
			{first: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{first: Sighting{9, "a_2", ""}, leads: leader("a", 9), moved: true},
			{admit: a5, want: "is over"},
		},
		"a late Sighting changes nothing": {
			{observe: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{observe: Sighting{7, "b_1", ""}, leads: b7, moved: true},
			{observe: Sighting{6, "a_1", ""}, leads: b7},
			{admit: a5, want: "node b holds"},
			{admit: b7},
		},
		"nor does the watch behind a write": {
			{first: Sighting{5, "a_1", ""}, leads: a5, moved: true},
			{observe: Sighting{7, "b_1", ""}, leads: b7, moved: true},
			{observe: Sighting{9, "b_1", ""}, leads: b7}, // a renewal, seen before the watch shows the acquisition
			{follow: Sighting{7, "b_1", ""}, leads: b7},
			{follow: Sighting{9, "b_1", ""}, leads: b7},
		},
		"an address that changes is no new term": {
			{observe: Sighting{5, "a_1", "x"}, leads: Leader{"a", "x", a5.Term}, moved: true},
			{observe: Sighting{6, "a_1", "y"}, leads: Leader{"a", "y", a5.Term}, moved: true},
			{admit: Leader{"a", "x", a5.Term}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			moves := 0
			f := &Fence{Incarnation: "now", Moved: func() { moves++ }}
			for i, a := range acts {
				before := moves
				none := Sighting{}
				switch {
				case a.observe != none:
					f.Observe(a.observe)
				case a.first != none:
					f.Follow(a.first, true)
				case a.follow != none:
					f.Follow(a.follow, false)
				default:
					err := f.Admit(a.admit)
					if (err == nil) != (a.want == "") || err != nil && !strings.Contains(err.Error(), a.want) {
						t.Fatalf("act %d: %+v is admitted with %v, want %q", i+1, a.admit, err, a.want)
					}
					continue
				}
				if got := f.Leader(); got != a.leads || (moves > before) != a.moved {
					t.Fatalf("act %d %+v: %+v leads, moved %v", i+1, a, got, moves > before)
				}
			}
		})
	}
}
