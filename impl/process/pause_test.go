package process

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/testkit"
)

// TestPause: a pause is over when its time is, or its context, and leaves no timer behind.
func TestPause(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	begin := func(d time.Duration) (end context.CancelFunc, over <-chan struct{}) {
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Pause(ctx, c, d)
		}()
		return end, done
	}
	_, over := begin(0)
	<-over
	_, over = begin(time.Minute)
	testkit.Until(t, time.Minute, "a pause", c.HasWaiters)
	c.Step(time.Minute)
	<-over
	end, over := begin(time.Minute)
	testkit.Until(t, time.Minute, "a pause", c.HasWaiters)
	end()
	<-over
	if c.HasWaiters() {
		t.Error("a timer is left behind")
	}
}
