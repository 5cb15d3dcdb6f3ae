package limit

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Ways bounds what is under way by letting it wait: Each for one key at once. Those of one key get their turn in the
// order in which they came, and no key waits for another one. How many may wait is for others to bound. It is safe for
// concurrent use.
type Ways struct {
	Each int64

	mu      sync.Mutex
	keys    map[string]*way
	waiting atomic.Int64
}

// way is what one key has.
type way struct {
	*semaphore.Weighted
	users int // that have one, or wait
}

// Take waits for a way of a key, at most until ctx ends: then the error is that of ctx, and the next one moves up. give
// gives the way back. It may be called again, and does nothing then.
func (w *Ways) Take(ctx context.Context, key string) (give func(), err error) {
	w.mu.Lock()
	of := w.keys[key]
	if of == nil {
		if w.keys == nil {
			w.keys = map[string]*way{}
		}
		of = &way{Weighted: semaphore.NewWeighted(w.Each)}
		w.keys[key] = of
	}
	of.users++
	w.mu.Unlock()
	if !of.TryAcquire(1) {
		w.waiting.Add(1)
		err = of.Acquire(ctx, 1)
		w.waiting.Add(-1)
		if err != nil {
			w.leave(key, of)
			return nil, err
		}
	}
	return sync.OnceFunc(func() {
		of.Release(1)
		w.leave(key, of)
	}), nil
}

// leave forgets a key that has nothing under way.
func (w *Ways) leave(key string, of *way) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(w.keys, key)
	}
}

// Waiting is how many wait.
func (w *Ways) Waiting() int64 { return w.waiting.Load() }
