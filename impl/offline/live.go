package offline

import (
	"sync"

	"github.com/weir-edge/weir/impl/store"
)

// live are the collections that a watch of the cloud keeps up to date now, and how many watches do.
type live struct {
	mu   sync.Mutex
	open map[store.Shape]int
}

// enter notes that a watch is recorded. leave may be called more than once.
func (l *live) enter(s store.Shape) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[s]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[s]--; l.open[s] == 0 {
			delete(l.open, s)
		}
	})
}

// has reports whether a watch of a collection is recorded.
func (l *live) has(s store.Shape) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[s] > 0
}
