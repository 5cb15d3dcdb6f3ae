package member

import (
	"testing"
	"time"
)

// TestBehind: how long an upstream is behind is counted on while a relay is fed from elsewhere for a moment. It begins
// again for another upstream, for a relay that has learned more, after the upstream came along, and after a long time
// without it.
func TestBehind(t *testing.T) {
	var b Behind
	now := time.Unix(1e9, 0)
	after := func(d time.Duration, upstream string, mine uint64, want time.Duration) {
		t.Helper()
		now = now.Add(d)
		if got, _ := b.Yields(upstream, mine, 0, now); got != want {
			t.Errorf("%s: behind for %v, want %v", upstream, got, want)
		}
	}
	after(0, "coordinator", 2, 0)
	after(12*time.Second, "coordinator", 2, 12*time.Second)
	b.Ended("cloud")
	after(12*time.Second, "coordinator", 2, 24*time.Second)
	after(time.Second, "coordinator", 3, 0)
	after(time.Second, "edge-2", 3, 0)
	after(BehindPatience+1, "edge-2", 3, 0)
	after(time.Second, "edge-2", 3, time.Second)
	b.Ended("edge-2")
	after(time.Second, "edge-2", 3, 0)
}
