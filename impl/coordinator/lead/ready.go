package lead

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
)

// Readiness tells which relays are ready.
type Readiness struct {
	FreshWithin time.Duration
	Floor       func(resource string) uint64 // the first history of the cloud that does not come from a leader that lied
	Clock       clock.PassiveClock
}

// Unready tells why a relay is not ready; nil: it is.
func (x Readiness) Unready(r *relay.Relay) error {
	s := r.Status()
	if s.Denied != "" {
		return fmt.Errorf("the cloud does not give %s to the leader: %s", r.Resource(), s.Denied)
	}
	if !s.Synced {
		return fmt.Errorf("%s has not been fed since the start", r.Resource())
	}
	now := x.Clock.Now()
	age, _ := s.Age(now)
	switch {
	case s.History.Number < x.Floor(r.Resource().String()):
		return fmt.Errorf("%s came from a leader that lied, and is not yet listed again", r.Resource())
	case s.Restored:
		return fmt.Errorf("%s was restored from a disk, or from what a hub held, and no leader has fed it since; "+
			"it is %v old", r.Resource(), age.Round(time.Second))
	case !s.Fresh(now, x.FreshWithin):
		return fmt.Errorf("%s was last fed %v ago, more than %v", r.Resource(), age.Round(time.Second), x.FreshWithin)
	}
	return nil
}

// Waits tells why the pool has to wait for a relay; nil: it is ready, or there is nothing that it could be fed with, or
// it has only just come.
func (x Readiness) Waits(r *relay.Relay) error {
	if s := r.Status(); s.Denied != "" || s.Joins {
		return nil
	}
	return x.Unready(r)
}
