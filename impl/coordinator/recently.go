package coordinator

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// recently is a check whose result counts for a time: whoever asks again meanwhile costs nothing. All who ask while it
// is under way wait for the one answer.
type recently struct {
	check func(context.Context) error
	lasts time.Duration
	clock clock.PassiveClock

	mu  sync.Mutex
	at  time.Time // of err; zero: none yet
	err error
}

func (r *recently) ask() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || r.clock.Since(r.at) >= r.lasts {
		r.err = r.check(context.Background()) // not of one caller, who may go away: others wait for it
		r.at = r.clock.Now()
	}
	return r.err
}
