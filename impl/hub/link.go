package hub

import (
	"context"
	"sync"
)

// link tells whether the cloud is away: each of its servers was judged, and none is healthy.
type link struct {
	reachable func() bool

	mu    sync.Mutex
	away  bool
	until context.Context // ends when that changes
	end   context.CancelFunc
}

func newLink(reachable func() bool) *link {
	l := &link{reachable: reachable}
	l.until, l.end = context.WithCancel(context.Background())
	return l
}

// look follows a change of a judgement.
func (l *link) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if away := !l.reachable(); away != l.away {
		l.end()
		l.away = away
		l.until, l.end = context.WithCancel(context.Background())
	}
}

// state tells whether the cloud is away, and gives a context that ends when that changes.
func (l *link) state() (away bool, until context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away, l.until
}
