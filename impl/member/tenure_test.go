package member

import (
	"testing"
	"time"
)

// TestTenure: a Lease ages from when a version was seen first, whatever comes late.
func TestTenure(t *testing.T) {
	var x Tenure
	at := time.Unix(1e9, 0)
	for _, c := range []struct {
		after   time.Duration // since the step before
		version uint64
		want    time.Duration
	}{
		{0, 7, 0},
		{14 * time.Second, 7, 14 * time.Second},
		{time.Second, 9, 0},     // renewed
		{5 * time.Second, 7, 0}, // what was read from a cache that is behind
		{5 * time.Second, 9, 10 * time.Second},
	} {
		at = at.Add(c.after)
		if got := x.Age(c.version, at); got != c.want {
			t.Errorf("version %d at %v: %v old, want %v", c.version, at.Unix(), got, c.want)
		}
	}
	x.Saw(12, at)
	if got := x.Age(12, at.Add(time.Minute)); got != time.Minute {
		t.Errorf("%v old", got)
	}
}
