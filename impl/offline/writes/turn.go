package writes

import (
	"math/rand/v2"
	"time"

	"github.com/weir-edge/weir/impl/member"
)

// Phase is how far a node's return to the cloud has come.
type Phase uint8

// In order. Heartbeats do not wait for any of them: they pass as soon as the cloud answers.
const (
	Apart   Phase = iota // the cloud is away
	Waiting              // it is back, and it is not this node's turn
	Pushing              // statuses that waited are pushed; clients are served as before
	Open                 // clients get the cloud's latest state; Events that waited are pushed
)

func (p Phase) String() string {
	return [...]string{"apart", "waiting", "pushing", "open"}[p]
}

// turn decides when a node does what after the cloud is back. It is pure.
type turn struct {
	spread, patience time.Duration
	random           *rand.Rand

	phase Phase
	since time.Time // Apart: since when the cloud is away
	until time.Time // Waiting, Pushing: when the phase ends at the latest
}

// newTurn is the turn of a hub that starts. If something waits, it was away, nobody knows for how long, and perhaps
// with its whole pool.
func newTurn(spread, patience time.Duration, random *rand.Rand, now time.Time, waits bool) turn {
	t := turn{spread: spread, patience: patience, random: random, phase: Open, since: now}
	if waits {
		t.phase, t.since = Apart, now.Add(-spread)
	}
	return t
}

// see takes what is known now. statuses is how many wait.
func (t *turn) see(now time.Time, reach member.Reach, statuses int) {
	switch {
	case reach == member.CloudAway && t.phase != Apart:
		t.phase, t.since = Apart, now
	case reach == member.CloudHere && t.phase == Apart:
		t.phase, t.until = Waiting, now
		// A hub that was away for a moment has missed little, and was seldom away with many others.
		if d := min(t.spread, now.Sub(t.since)); d > 0 {
			t.until = now.Add(time.Duration(t.random.Int64N(int64(d))))
		}
	}
	if t.phase == Waiting && !now.Before(t.until) {
		t.phase, t.until = Pushing, now.Add(t.patience)
	}
	if t.phase == Pushing && (statuses == 0 || !now.Before(t.until)) {
		t.phase = Open
	}
}

// again goes back to pushing if statuses wait.
func (t *turn) again(now time.Time, statuses int) (moved bool) {
	if moved = t.phase == Open && statuses > 0; moved {
		t.phase, t.until = Pushing, now.Add(t.patience)
	}
	return moved
}

// wake is when see has to be called again, if nothing else happens; false: never.
func (t *turn) wake() (at time.Time, ok bool) {
	return t.until, t.phase == Waiting || t.phase == Pushing
}
