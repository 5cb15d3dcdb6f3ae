package member

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	proofLook   = 50 * time.Millisecond  // how often a hub looks whether the cloud has answered
	proofAge    = time.Second            // how old a sign of life may be when the Lease becomes free
	proofPause  = 150 * time.Millisecond // left to the hub that led: often it is back at once, with its streams open
	proofSpread = 250 * time.Millisecond // over which the hubs of a pool ask: the first that knows leads, and spares the others
	proofYield  = 300 * time.Millisecond // left to the hub that led, when the cloud was away for all
)

// proof is that the cloud can be reached now: what was known before the election Lease became free may have changed with it. In
// a pool that is cut off as a whole, the Lease would go round. It is for one goroutine.
type proof struct {
	heard  func() time.Time // the last sign of life of the cloud
	ask    func()           // makes it give one
	logger *slog.Logger

	free   time.Time // since when the Lease is seen to be free; zero: it is not
	due    time.Time // when the cloud is to be asked; zero: it was
	proven time.Time // when the proof was seen
}

// noticed takes what was seen of the Lease.
func (p *proof) noticed(now time.Time, free bool) {
	switch {
	case !free:
		p.free, p.due, p.proven = time.Time{}, time.Time{}, time.Time{}
	case p.free.IsZero():
		p.free, p.due = now, now.Add(proofPause+rand.N(proofSpread))
	}
}

// holds tells whether there is proof, and asks for it. atCloud: this hub's streams from the cloud are open.
func (p *proof) holds(now time.Time, atCloud bool) bool {
	if p.free.IsZero() {
		return true
	}
	if !atCloud && now.Sub(p.free) < proofPause {
		return false
	}
	if p.proven.IsZero() {
		if p.heard().Before(p.free.Add(-proofAge)) {
			if !p.due.IsZero() && !now.Before(p.due) {
				p.due = time.Time{}
				p.logger.Debug("nobody leads: asking whether the cloud is there")
				p.ask()
			}
			return false
		}
		p.proven = now
	}
	late := p.proven.Sub(p.free) > proofAge
	return !late || atCloud || now.Sub(p.proven) >= proofYield
}
