package offline

import (
	"maps"
	"slices"
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

// of are those of a component.
func (l *live) of(component string, r store.Resource) []store.Shape {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(l.open)), func(s store.Shape) bool {
		return s.Component != component || s.Resource != r
	})
}
