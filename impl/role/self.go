package role

import (
	"math/rand/v2"
	"time"
)

// self is what all parts of a machine know of it.
type self struct {
	cfg     Config
	rng     *rand.Rand
	snap    Snapshot // of the last step
	reached bool     // the coordinator was healthy once
	unready bool     // the pool's cache is known not to be ready
}

func newSelf(c Config, stream uint64) self {
	c = c.WithDefaults()
	return self{cfg: c, rng: rand.New(rand.NewPCG(c.Seed, stream)), snap: Snapshot{Reason: "starting"}}
}

// patience is how long a starting machine waits for a Ready coordinator.
func (m *self) patience() time.Duration {
	if m.reached {
		return m.cfg.Wait
	}
	return m.cfg.Wait / 3
}

// spread is a random part of a time.
func (m *self) spread(over time.Duration) time.Duration {
	return time.Duration(m.rng.Float64() * float64(over))
}

// jitter spreads the requests of hubs that started together.
func (m *self) jitter(period time.Duration) time.Duration {
	return period + m.spread(period/5)
}
