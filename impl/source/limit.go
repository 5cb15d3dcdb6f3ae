package source

import (
	"context"
	"errors"
	"time"

	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	// slack is how much later than its timeout a watch may end while nothing comes, before it counts as dead.
	slack = 5 * time.Second
	// inFront bounds the bytes that an answer may be behind, with what HTTP/2 lets a server send before it is read.
	inFront = 4 << 20
)

// limit is a context that ends with a cause after a time, unless bytes still come from the upstream: then what is
// waited for is behind them, and comes as soon as the link has carried them. It ends once nothing has come for slack,
// or more than can be in front.
func (f *Feeder) limit(ctx context.Context, up *hop.Upstream, d time.Duration, because error) (context.Context,
	context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	quiet := min(slack, d)
	timer, due := f.cfg.Clock.NewTimer(d-quiet), int64(-1)
	go func() {
		defer timer.Stop()
		for seen := int64(-1); ; {
			select {
			case <-timer.C():
			case <-ctx.Done():
				return
			}
			now := up.Bytes()
			if seen >= 0 && due < 0 {
				due = now
			}
			if now == seen || due >= 0 && now-due > inFront {
				cancel(because)
				return
			}
			seen = now
			timer.Reset(quiet)
		}
	}()
	return ctx, cancel
}

// cause is why a context ended, if that tells more than err.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil && !errors.Is(c, context.Canceled) {
		return c
	}
	return err
}
