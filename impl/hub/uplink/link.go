package uplink

import (
	"context"
	"sync"
)

// Link reports whether the cloud is away: each of its servers was judged, and none is healthy.
type Link struct {
	reachable func() bool

	mu    sync.Mutex
	away  bool
	until context.Context // ends when that changes
	end   context.CancelFunc
}

// NewLink makes one by what reports whether the cloud can be reached.
func NewLink(reachable func() bool) *Link {
	l := &Link{reachable: reachable}
	l.until, l.end = context.WithCancel(context.Background())
	return l
}

// Look follows a change of a judgement.
func (l *Link) Look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if away := !l.reachable(); away != l.away {
		l.end()
		l.away = away
		l.until, l.end = context.WithCancel(context.Background())
	}
}

// State reports whether the cloud is away, and gives a context that ends when that changes.
func (l *Link) State() (away bool, until context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away, l.until
}
