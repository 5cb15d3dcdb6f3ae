package writes

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/member"
)

const unknown, here, away = member.CloudUnknown, member.CloudHere, member.CloudAway

// TestTurn: how the phases follow from what is seen.
func TestTurn(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	type seen struct {
		at       time.Duration
		reach    member.Reach
		statuses int
		want     Phase
	}
	s := time.Second
	for _, c := range []struct {
		what  string
		waits bool
		seen  []seen
	}{
		{"nothing happens", false, []seen{{0, unknown, 0, Open}, {s, here, 0, Open}, {9 * s, here, 3, Open}}},
		{
			"away and back", false, []seen{
				{0, here, 0, Open}, {s, away, 0, Apart}, {100 * s, away, 5, Apart}, {101 * s, here, 5, Waiting},
				{106 * s, here, 5, Pushing}, {107 * s, here, 0, Open},
			},
		},
		{"nothing waits", false, []seen{{s, away, 0, Apart}, {101 * s, here, 0, Waiting}, {106 * s, here, 0, Open}}},
		{
			"it takes too long", false, []seen{
				{s, away, 0, Apart}, {101 * s, here, 5, Waiting}, {106 * s, here, 5, Pushing}, {115 * s, here, 1, Pushing},
				{116 * s, here, 1, Open},
			},
		},
		{
			"away again", false, []seen{
				{s, away, 0, Apart}, {101 * s, here, 5, Waiting}, {102 * s, away, 5, Apart}, {300 * s, unknown, 5, Apart},
				{301 * s, here, 5, Waiting}, {310 * s, here, 5, Pushing}, {311 * s, away, 5, Apart},
			},
		},
		{
			"for a moment", false, []seen{
				{s, away, 0, Apart}, {s + time.Millisecond, here, 2, Waiting}, {s + 2*time.Millisecond, here, 2, Pushing},
			},
		},
		{
			"a start with something that waits", true, []seen{
				{0, unknown, 5, Apart}, {s, here, 5, Waiting}, {6 * s, here, 5, Pushing}, {7 * s, here, 0, Open},
			},
		},
	} {
		turn := newTurn(5*s, 10*s, rand.New(rand.NewPCG(3, 3)), start, c.waits)
		for _, x := range c.seen {
			turn.see(start.Add(x.at), x.reach, x.statuses)
			if turn.phase != x.want && (x.want != Waiting || turn.phase != Pushing) {
				t.Errorf("%s: at %v it is %v, want %v", c.what, x.at, turn.phase, x.want)
			}
			if at, ok := turn.wake(); ok && at.Sub(start.Add(x.at)) > 10*s {
				t.Errorf("%s: at %v it sleeps until %v", c.what, x.at, at.Sub(start))
			}
		}
	}
}

// TestSpread: nodes that return together do not come at once.
func TestSpread(t *testing.T) {
	const n, spread = 1000, 5 * time.Second
	start := time.Unix(1_800_000_000, 0)
	var tenths [10]int
	for seed := range uint64(n) {
		turn := newTurn(spread, time.Second, rand.New(rand.NewPCG(seed, 31)), start, true)
		turn.see(start, here, 1)
		at, _ := turn.wake()
		tenths[at.Sub(start)*10/spread]++
	}
	for i, k := range tenths {
		if k > 2*n/10 {
			t.Errorf("%d of %d come in tenth %d: %v", k, n, i, tenths)
		}
	}
}
