package lead

import (
	"testing"
	"time"
)

// TestLag: a look that comes late tells for two seconds how late this process gets to run.
func TestLag(t *testing.T) {
	var l lag
	now := time.Unix(1e9, 0)
	for i, c := range []struct {
		looks int           // that come in time
		late  time.Duration // of one after them
		want  time.Duration
	}{
		{looks: 1}, {late: 600 * time.Millisecond, want: 600 * time.Millisecond},
		{looks: 5, late: 50 * time.Millisecond, want: 600 * time.Millisecond},
		{looks: lagLooks - 7, late: 0, want: 600 * time.Millisecond}, {looks: 1, want: 50 * time.Millisecond},
		{looks: lagLooks},
	} {
		for range c.looks {
			now = now.Add(lagLook)
			l.look(now)
		}
		if c.late > 0 {
			now = now.Add(lagLook + c.late)
			l.look(now)
		}
		if got := l.lately(); got != c.want {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
}
