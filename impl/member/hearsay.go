package member

import (
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

const (
	hearFirst = 2 * time.Second  // after which nobody leading is taken for a lack of leaders
	hearMost  = 30 * time.Second // between two rounds of questions that brought nothing
)

// Rounds decides when a coordinator that nobody leads asks the hubs what they hold. The zero value begins.
type Rounds struct{ wait time.Duration }

// Wait is how long to wait before the next round; half of it is drawn by lot.
func (r *Rounds) Wait() time.Duration {
	r.wait = max(min(2*r.wait, hearMost), hearFirst)
	return r.wait
}

// Came notes that a round brought something.
func (r *Rounds) Came() { r.wait = 0 }

// Offer is what a hub says that it holds of a resource.
type Offer struct {
	Node    string
	Synced  bool
	Denied  bool // the cloud does not give it to the hub
	History uint64
	Version uint64
}

// Latest is the offer that moves a relay forward most: in its own history, or if the relay holds nothing, in the latest
// that can have been counted. nil: none does.
func Latest(st relay.Status, said []Offer) (best *Offer) {
	for i := range said {
		switch s := &said[i]; {
		case !s.Synced || s.Denied:
		case st.Synced && (s.History != st.History.Number || s.Version <= st.Version):
		case !st.Synced && !(relay.History{Number: s.History}).First():
		case best == nil || s.History > best.History || s.History == best.History && s.Version > best.Version:
			best = s
		}
	}
	return best
}
