package member

import (
	"testing"
	"time"
)

// TestStuck: a leader hub is left from which nothing fresh comes for longer than patience, though it says that it is
// fresh. What moves is catching up, one that was taken a moment ago has its time, and so has a hub that was not
// running.
func TestStuck(t *testing.T) {
	const a, b = "a", "b"
	s := stuck{patience: 20 * time.Second}
	now := 0
	for i, c := range []struct {
		until   int // second; it looks in each one
		asleep  bool
		use     string
		stale   bool
		reached uint64
		want    bool
	}{
		{60, false, a, false, 1, false},
		{61, false, a, true, 1, false}, {81, false, a, true, 1, false}, {82, false, a, true, 1, true},
		{83, false, a, true, 1, false},                                  // it was told
		{84, false, b, true, 1, false}, {104, false, b, true, 1, false}, // another one
		{105, false, b, true, 2, false}, {125, false, b, true, 2, false}, // it moved
		{126, false, b, false, 2, false}, {127, false, b, true, 2, false}, {147, false, b, true, 2, false},
		{148, false, b, true, 2, true},
		{300, true, b, true, 2, false}, {320, false, b, true, 2, false}, {321, false, b, true, 2, true},
	} {
		if c.asleep {
			now = c.until - 1
		}
		got := false
		for ; now < c.until; now++ {
			got = got || s.look(time.Unix(1e9+int64(now)+1, 0), c.use, c.stale, c.reached)
		}
		if got != c.want {
			t.Errorf("%d, until %d s: stuck %t, want %t", i, c.until, got, c.want)
		}
	}
}
