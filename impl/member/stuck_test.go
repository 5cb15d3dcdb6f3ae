package member

import (
	"testing"
	"time"
)

// TestStuck: a leader hub is left from which nothing fresh comes for longer than patience, though it says that it is fresh. What moves is catching up, and one that was
// taken a moment ago has its time.
func TestStuck(t *testing.T) {
	const a, b = "a", "b"
	s := stuck{patience: 20 * time.Second}
	for i, c := range []struct {
		at      time.Duration
		use     string
		stale   bool
		reached uint64
		want    bool
	}{
		{0, a, false, 1, false}, {time.Minute, a, false, 1, false},
		{61 * time.Second, a, true, 1, false}, {80 * time.Second, a, true, 1, false}, {82 * time.Second, a, true, 1, true},
		{83 * time.Second, a, true, 1, false},                                         // it was told
		{90 * time.Second, b, true, 1, false}, {109 * time.Second, b, true, 1, false}, // another one, for 19 s
		{110 * time.Second, b, true, 2, false}, {129 * time.Second, b, true, 2, false}, // it moved
		{130 * time.Second, b, false, 2, false}, {131 * time.Second, b, true, 2, false}, {152 * time.Second, b, true, 2, true},
	} {
		if got := s.look(time.Unix(1e9, 0).Add(c.at), c.use, c.stale, c.reached); got != c.want {
			t.Errorf("%d, at %v: stuck %t, want %t", i, c.at, got, c.want)
		}
	}
}
