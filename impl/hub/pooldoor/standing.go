package pooldoor

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
)

// standingAgain is how often a standing is told though it did not change: who follows it has a sign of life by that.
const standingAgain = 10 * time.Second

// Standing is how this hub stands. It is safe for concurrent use.
type Standing struct {
	clock clock.WithTicker

	mu      sync.Mutex
	now     contract.Standing
	changed chan struct{} // closed by the next change
}

// NewStanding makes that of a hub that does not lead.
func NewStanding(c clock.WithTicker) *Standing {
	return &Standing{clock: c, changed: make(chan struct{})}
}

// Set says how this hub stands from now on. It never blocks.
func (s *Standing) Set(now contract.Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == now {
		return
	}
	s.now = now
	close(s.changed)
	s.changed = make(chan struct{})
}

// Now is how it stands, and what tells of the next change.
func (s *Standing) Now() (contract.Standing, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.changed
}

// Fresh reports whether this hub leads and is fresh.
func (s *Standing) Fresh() bool {
	now, _ := s.Now()
	return now.Fresh
}

// Vouch reports whether a relay is shown by a leader hub that hears the cloud, and is fresh, by the age that the last
// sign of its stream may have; nil: one would be.
func (s *Standing) Vouch(r *relay.Relay, maxAge time.Duration) bool {
	now, _ := s.Now()
	if r == nil {
		return now.Leader
	}
	is := r.Status()
	return now.Leader && is.Denied == "" && is.Fresh(s.clock.Now(), maxAge)
}

// ServeHTTP tells how this hub stands, one line of JSON for each change, until who asked is gone.
func (s *Standing) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/jsonl")
	lines, out := json.NewEncoder(w), http.NewResponseController(w)
	tick := s.clock.NewTicker(standingAgain)
	defer tick.Stop()
	for {
		now, changed := s.Now()
		if lines.Encode(now) != nil || out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-tick.C():
		case <-req.Context().Done():
			return
		}
	}
}
