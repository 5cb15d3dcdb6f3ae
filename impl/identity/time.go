package identity

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Skew is how far a node's clock and the cloud's may be apart before a token counts as not yet valid.
const Skew = 5 * time.Minute

// cloudTime is the time by which validity is judged: the cloud's, as it said last, and the monotonic clock since.
type cloudTime struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	heard bool      // by this process
	said  time.Time // by the cloud; before this process heard it, what was kept
	at    time.Time // when, by the local clock
}

// Now implements the rule of the package comment.
func (t *cloudTime) Now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	told := t.said.Add(t.clock.Since(t.at)).Round(0)
	if !t.heard && (t.said.IsZero() || now.After(told)) {
		return now.Round(0)
	}
	return told
}

// hear takes the Date of an answer of the cloud.
func (t *cloudTime) hear(h http.Header) {
	said, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said, t.at, t.heard = said, t.clock.Now(), true
}

// restore brings back what the cloud said to a process before.
func (t *cloudTime) restore(said time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.heard {
		t.said, t.at = said, t.clock.Now()
	}
}

// heardCloud tells whether the cloud has answered this process.
func (t *cloudTime) heardCloud() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard
}
