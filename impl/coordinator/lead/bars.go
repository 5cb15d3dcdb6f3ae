package lead

import (
	"maps"
	"sync"
	"time"
)

// barredFor is for how long a hub that could not be read leaves the election Lease to others.
const barredFor = 15 * time.Second

// Bars are the nodes that may not lead for a while. The zero value has none. It is safe for concurrent use.
type Bars struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// Add bars a node from now on, for a while.
func (b *Bars) Add(node string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = map[string]time.Time{}
	}
	maps.DeleteFunc(b.until, func(_ string, until time.Time) bool { return !until.After(now) })
	b.until[node] = now.Add(barredFor)
}

// Hold reports whether a node is barred.
func (b *Bars) Hold(node string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until[node].After(now)
}
