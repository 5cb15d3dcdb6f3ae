package member

import (
	"math/rand/v2"
	"time"
)

const (
	proofLook   = 50 * time.Millisecond  // how often a hub looks whether the cloud has answered
	proofAge    = time.Second            // how old a sign of life may be when the Lease becomes free
	proofPause  = 150 * time.Millisecond // left to the hub that led: often it is back at once, with its streams open
	proofSpread = 250 * time.Millisecond // over which hubs ask: the first that knows leads, and spares the others
	proofYield  = 300 * time.Millisecond // left to the hub that led, when the cloud was away for all
	// proofReturn is left to the hub that led when the coordinator was silent for all: it has to connect and to read
	// again, and so has everybody at that moment.
	proofReturn = 500 * time.Millisecond
)

// proof is that the cloud can be reached now: what was known before the election Lease became free may have changed
// with it. In a pool that is cut off as a whole, the Lease would go round.
type proof struct {
	rng    *rand.Rand
	free   time.Time // since when the Lease is seen to be free; zero: it is not
	due    time.Time // when the cloud is to be asked; zero: it was
	proven time.Time // when the proof was seen
	pause  time.Duration

	answered time.Time // when the coordinator last did
	back     time.Time // since when it does again after a silence; zero: there was none
}

// answers notes that the coordinator does. A silence is what is longer than it is between two renewals of a leader.
func (p *proof) answers(now time.Time, silence time.Duration) {
	if !p.answered.IsZero() && now.Sub(p.answered) > silence {
		p.back = now
	}
	p.answered = now
}

// noticed takes what was seen of the Lease.
func (p *proof) noticed(now time.Time, free bool) {
	switch {
	case !free:
		p.free, p.due, p.proven = time.Time{}, time.Time{}, time.Time{}
	case p.free.IsZero():
		spread := time.Duration(p.rng.Int64N(int64(proofSpread)))
		if p.pause = proofPause; now.Sub(p.back) < proofReturn {
			p.pause = proofReturn
		}
		p.free, p.due = now, now.Add(p.pause+spread)
	}
}

// holds reports whether there is proof, and whether the cloud is to be asked for it now. heard is its last sign of
// life. atCloud: this hub's streams from the cloud are open.
func (p *proof) holds(now, heard time.Time, atCloud bool) (holds, ask bool) {
	if p.free.IsZero() {
		return true, false
	}
	if !atCloud && now.Sub(p.free) < p.pause {
		return false, false
	}
	if p.proven.IsZero() {
		if heard.Before(p.free.Add(-proofAge)) {
			ask = !p.due.IsZero() && !now.Before(p.due)
			if ask {
				p.due = time.Time{}
			}
			return false, ask
		}
		p.proven = now
	}
	late := p.proven.Sub(p.free) > proofAge
	return !late || atCloud || now.Sub(p.proven) >= proofYield, false
}
