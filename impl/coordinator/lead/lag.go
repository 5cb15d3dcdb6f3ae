package lead

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	lagLook  = 100 * time.Millisecond // between two looks at the clock
	lagLooks = 20                     // that are remembered
)

// lag is how late this process gets to run: who has no processor himself must not call another one silent for that. One
// goroutine looks at the clock, any may ask.
type lag struct {
	late  [lagLooks]time.Duration
	looks int
	last  time.Time
	worst atomic.Int64 // of late
}

// watch looks at the clock until ctx ends.
func (l *lag) watch(ctx context.Context, c clock.WithTicker) {
	tick := c.NewTicker(lagLook)
	defer tick.Stop()
	for l.look(c.Now()); ; l.look(c.Now()) {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return
		}
	}
}

func (l *lag) look(now time.Time) {
	if !l.last.IsZero() {
		l.late[l.looks%lagLooks] = max(now.Sub(l.last)-lagLook, 0)
		l.looks++
	}
	l.last = now
	l.worst.Store(int64(slices.Max(l.late[:])))
}

// lately is the worst of the last two seconds.
func (l *lag) lately() time.Duration { return time.Duration(l.worst.Load()) }
