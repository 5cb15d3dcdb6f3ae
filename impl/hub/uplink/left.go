package uplink

import (
	"context"
	"time"

	"github.com/weir-edge/weir/impl/process"
)

const (
	// leftWithin is how long Left waits. A cut is known 9 s after a probe is asked for, by default.
	leftWithin = 15 * time.Second
	leftPoll   = 100 * time.Millisecond
)

// Left reports whether the cloud is away, and makes sure first. It asks the cloud for a sign of life, and waits for it,
// or until the cloud is judged to be away. False also means that neither came in time.
func (k *Cloud) Left(ctx context.Context) bool {
	if away, _ := k.IsAway(); away {
		return true
	}
	asked := k.clock.Now()
	k.Ask()
	for ctx.Err() == nil && k.clock.Since(asked) < leftWithin {
		if away, _ := k.IsAway(); away {
			return true
		}
		if k.LastHeard().After(asked) {
			return false
		}
		process.Pause(ctx, k.clock, leftPoll)
	}
	return false
}
