package member

import (
	"sync"
	"time"
)

// Tenure tells when a Lease of the pool has expired: when this coordinator has seen no write of it for its duration, by
// its own monotonic clock. Neither the clock of the holder nor that of the one that wants the Lease counts. After a
// start all is seen for the first time, so that a full duration passes. Of several replicas each has its own Tenure;
// one that hears late of a renewal lets nobody in early, because the write of who takes the Lease is on condition of
// the version that was judged.
//
// It does no I/O. The zero value is ready.
type Tenure struct {
	mu      sync.Mutex
	version uint64    // the newest that was seen
	since   time.Time // when it was seen first
}

// Saw notes that the Lease is at a version. Earlier versions than the newest come late and are passed over.
func (t *Tenure) Saw(version uint64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if version > t.version {
		t.version, t.since = version, now
	}
}

// Age is how long ago the Lease was written, as far as this coordinator has seen.
func (t *Tenure) Age(version uint64, now time.Time) time.Duration {
	t.Saw(version, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if version < t.version {
		return 0
	}
	return now.Sub(t.since)
}
