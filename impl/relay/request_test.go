package relay

import (
	"context"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestNoWatchIsForEver: whoever may watch is asked when a watch begins, so it ends, however long its client wants it to
// last.
func TestNoWatchIsForEver(t *testing.T) {
	for _, seconds := range []string{"", "&timeoutSeconds=1000000000", "&timeoutSeconds=9223372036854775807"} {
		clock := testingclock.NewFakeClock(time.Now())
		r := newRelay(t, withClock(clock))
		replace(t, r, 10)
		w := watch(t, r, "resourceVersion=10"+seconds)
		eventually(t, "the watch to sleep", func() bool { return r.Status().Watchers == 1 && clock.HasWaiters() })
		clock.Step(MinWatch - time.Second)
		apply(t, r, wire.Added, slice(t, "a/x", 11))
		w.want("ADDED a/x 11")
		eventually(t, "the watch to sleep", clock.HasWaiters)
		clock.Step(MinWatch + time.Second)
		w.want("EOF")
	}
}

// TestQuietResourceIsResumed: a client that was away for longer than the ring remembers resumes if nothing happened
// meanwhile, whatever bookmarks came.
func TestQuietResourceIsResumed(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock), func(c *Config) { c.RingAge = time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { cancel(); <-done }()
	replace(t, r, 10)
	apply(t, r, wire.Added, slice(t, "a/x", 11))
	eventually(t, "the janitor", clock.HasWaiters)
	clock.Step(2 * time.Minute)
	eventually(t, "an empty ring", func() bool { return r.Status().RingEvents == 0 })
	for version := range uint64(3) {
		bookmark(t, r, 20+version)
		clock.Step(2 * time.Minute)
		eventually(t, "an empty ring", func() bool { return r.Status().RingEvents == 0 })
	}
	apply(t, r, wire.Added, slice(t, "a/y", 30))
	if r.Resumable(10) || !r.Resumable(11) || !r.Resumable(20) {
		t.Error("resumable at 10, or not at 11 and 20")
	}
	watch(t, r, "resourceVersion=11").want("ADDED a/y 30")
}
