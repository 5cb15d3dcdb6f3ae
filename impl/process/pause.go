package process

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Pause waits for a time, or until ctx ends.
func Pause(ctx context.Context, c clock.Clock, d time.Duration) {
	if d <= 0 {
		return
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
	case <-ctx.Done():
	}
}
