package member

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/feeder"
	"github.com/weir-edge/weir/impl/pause"
)

const (
	sharedLook = 30 * time.Second // how often the coordinator is asked which resources it has
	sharedSoon = 2 * time.Second  // while that is not known, or one of them is not fed from there
	sharedAsk  = 2 * time.Second  // for an answer
)

// shared is what this hub and the coordinator have in common: the lists of both are given by flags, and one is often
// changed before the other.
type shared struct {
	*Config
	reachable func() bool
	changed   func() // something may have changed
	astray    atomic.Bool

	mu     sync.Mutex
	known  bool
	at     time.Time       // when that was asked
	theirs map[string]bool // resources of the coordinator, and whether they are fresh there
	lacks  Differences
	doubt  *contract.Doubt // what the coordinator asks its hubs; nil: nothing
}

// Differences are the resources that only one of hub and coordinator has.
type Differences struct {
	Coordinator []string `json:"coordinator,omitempty"` // lacks them
	Hub         []string `json:"hub,omitempty"`
}

// run asks until ctx ends.
func (s *shared) run(ctx context.Context) error {
	for due := (time.Time{}); ctx.Err() == nil; pause.For(ctx, s.Clock, sharedSoon) {
		if now := s.Clock.Now(); !s.reachable() || s.isKnown() && !s.astray.Load() && now.Before(due) {
			continue
		}
		asked := s.Clock.Now()
		limit, cancel := context.WithTimeout(ctx, sharedAsk)
		status, err := s.Coordinator.Status(limit)
		cancel()
		if err == nil {
			s.take(asked, status)
			due = s.Clock.Now().Add(sharedLook)
		}
	}
	return nil
}

// take notes what the coordinator says who was asked at a time, and tells a person what differs.
func (s *shared) take(asked time.Time, status *coordinator.Status) {
	theirs, lacks := map[string]bool{}, Differences{}
	for _, r := range status.Resources {
		theirs[r.Resource] = r.Ready
		if s.Sources.Named(r.Resource) == nil {
			lacks.Hub = append(lacks.Hub, r.Resource)
		}
	}
	for _, f := range s.Sources.All() {
		if _, ok := theirs[f.Resource]; !ok && !f.Relay.Status().Joins {
			lacks.Coordinator = append(lacks.Coordinator, f.Resource)
		}
	}
	s.mu.Lock()
	was := s.lacks
	s.known, s.at, s.theirs, s.lacks, s.doubt = true, asked, theirs, lacks, status.Doubt
	s.mu.Unlock()
	s.changed()
	if !slices.Equal(was.Coordinator, lacks.Coordinator) {
		s.tell(lacks.Coordinator, "the coordinator does not have resources of --pool-scope-resources of this hub: "+
			"each hub takes them from the cloud")
	}
	if !slices.Equal(was.Hub, lacks.Hub) {
		s.tell(lacks.Hub, "the coordinator has resources that this hub does not have in --pool-scope-resources: "+
			"here they are the cloud's, and this hub does not feed them")
	}
	if len(was.Coordinator)+len(was.Hub) > 0 && len(lacks.Coordinator)+len(lacks.Hub) == 0 {
		s.Logger.Info("hub and coordinator have the same resources")
	}
}

func (s *shared) tell(resources []string, what string) {
	if len(resources) > 0 {
		s.Logger.Warn(what, "resources", resources)
	}
}

func (s *shared) isKnown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// missing tells whether the coordinator is known not to have a resource. What it has begun to feed since it was asked, it has.
func (s *shared) missing(f *feeder.Feeder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.theirs[f.Resource]; has || !s.known {
		return false
	}
	return !f.Given(s.at)
}

// forget makes a resource count as not fresh there until the coordinator says that it is.
func (s *shared) forget(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.theirs[resource] {
		s.theirs[resource] = false
	}
}

// there tells whether a resource was fresh at the coordinator when that was asked last.
func (s *shared) there(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.theirs[resource]
}

// asked is what the coordinator asked when it was last heard, nil if nothing.
func (s *shared) asked() *contract.Doubt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubt
}

func (s *shared) differences() Differences {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lacks
}
