package virtual

import (
	"time"

	"k8s.io/utils/clock"
)

// relayClock is virtual time for a relay. Its timers are where a watch that is being served waits: see tap.
type relayClock struct {
	loop    *Loop
	serving *tap // runs now
}

var _ clock.WithTicker = (*relayClock)(nil)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *relayClock) Now() time.Time                  { return began.Add(c.loop.Now()) }
func (c *relayClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *relayClock) NewTimer(time.Duration) clock.Timer {
	return &tapTimer{tap: c.serving, c: make(chan time.Time, 1)}
}

func (c *relayClock) After(time.Duration) <-chan time.Time        { panic("not used by a relay") }
func (c *relayClock) Sleep(time.Duration)                         { panic("not used by a relay") }
func (c *relayClock) NewTicker(time.Duration) clock.Ticker        { panic("not used by a relay") }
func (c *relayClock) Tick(time.Duration) <-chan time.Time         { panic("not used by a relay") }
func (c *relayClock) AfterFunc(time.Duration, func()) clock.Timer { panic("not used by a relay") }

// tapTimer is the timer of a watch. A watch resets it when it has sent all there is and is about to wait.
type tapTimer struct {
	tap *tap
	c   chan time.Time
}

func (t *tapTimer) C() <-chan time.Time { return t.c }
func (t *tapTimer) Stop() bool          { return true }

func (t *tapTimer) Reset(d time.Duration) bool {
	select {
	case <-t.c:
	default:
	}
	if t.tap.wait(d) {
		t.c <- time.Time{} // whatever woke it: the watch looks again
	}
	return true
}
