package coordinator_test

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// later is a clock that stands until it is set forward, which brings what AfterFunc waits for. Its other timers are
// those of the real one.
type later struct {
	clock.RealClock

	mu      sync.Mutex
	now     time.Time // zero: nobody has asked
	waiting []*laterTimer
}

// laterTimer is what AfterFunc returns; nobody here asks for its channel or resets it.
type laterTimer struct {
	clock.Timer
	clock *later
	due   time.Time
	f     func()
}

// Now implements clock.PassiveClock.
func (l *later) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now.IsZero() {
		l.now = l.RealClock.Now()
	}
	return l.now
}

// Since implements clock.PassiveClock.
func (l *later) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

// AfterFunc implements clock.WithDelayedExecution.
func (l *later) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &laterTimer{clock: l, due: l.Now().Add(d), f: f}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, t)
	return t
}

// Stop implements clock.Timer.
func (t *laterTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	f := t.f
	t.f = nil
	return f != nil
}

// pass lets time pass for the coordinator, and for nobody else.
func (l *later) pass(d time.Duration) {
	now := l.Now().Add(d)
	l.mu.Lock()
	l.now = now
	var due []func()
	for _, t := range l.waiting {
		if t.f != nil && !t.due.After(now) {
			due, t.f = append(due, t.f), nil
		}
	}
	l.mu.Unlock()
	for _, f := range due {
		f()
	}
}
