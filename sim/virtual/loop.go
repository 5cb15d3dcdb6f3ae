package virtual

import (
	"math/rand/v2"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

// Loop is virtual time, and the one source of all chance of a schedule.
type Loop struct {
	testkit.Loop

	rng     *rand.Rand
	servers []*server // all that there were
}

func newLoop(seed uint64) *Loop { return &Loop{rng: rand.New(rand.NewPCG(seed, 0))} }

// upTo is a random time.
func (l *Loop) upTo(d time.Duration) time.Duration { return time.Duration(l.rng.Int64N(int64(d) + 1)) }

// jitter is between half of a time and all of it, as the product's waits are.
func (l *Loop) jitter(d time.Duration) time.Duration { return d/2 + l.upTo(d/2) }

// one tells in one of n cases.
func (l *Loop) one(n int) bool { return l.rng.IntN(n) == 0 }
