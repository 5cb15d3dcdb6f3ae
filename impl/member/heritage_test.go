package member

import (
	"testing"
	"time"
)

// TestHeritage: a process that has held the Lease for as long as one lasts, or that is told to end while it holds it,
// leaves who it was. One that fails before, or that does not lead, leaves what is there: the one before may still hold
// the Lease.
func TestHeritage(t *testing.T) {
	type step struct {
		at          int // in seconds
		holds, told bool
	}
	for name, test := range map[string]struct {
		steps []step
		left  int
	}{
		"told to end as leader": {
			[]step{{0, false, false}, {1, true, false}, {2, true, true}, {3, true, true}}, 1,
		},
		"told to end as follower":  {[]step{{0, false, false}, {40, false, true}}, 0},
		"fails soon":               {[]step{{40, true, false}, {54, true, false}}, 0},
		"leads for a Lease's time": {[]step{{40, true, false}, {55, true, false}, {90, true, false}}, 1},
		"leads twice, each time for a moment": {
			[]step{{0, true, false}, {10, false, false}, {20, true, false}, {30, true, false}}, 0,
		},
		"has told, and is told to end":           {[]step{{0, true, false}, {15, true, false}, {20, true, true}}, 1},
		"follows for longer than a Lease's time": {[]step{{0, false, false}, {16, false, false}, {60, false, false}}, 0},
	} {
		began := time.Unix(1e9, 0)
		var h heritage
		left := 0
		for _, s := range test.steps {
			if h.due(began.Add(time.Duration(s.at)*time.Second), 15*time.Second, s.holds, s.told) {
				left++
			}
		}
		if left != test.left {
			t.Errorf("%s: left %d times, want %d", name, left, test.left)
		}
	}
}
