package member

import (
	"log/slog"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

// Differences are the resources that only one of hub and coordinator has. The lists of both are given by flags, and one
// is often changed before the other.
type Differences struct {
	Coordinator []string `json:"coordinator,omitempty"` // lacks them
	Hub         []string `json:"hub,omitempty"`
}

// shared is what the coordinator said that it has.
type shared struct {
	known  bool
	at     time.Time       // when that was asked
	theirs map[string]bool // resources of the coordinator, and whether they are fresh there
	idle   []string        // that it has once they are read
	lacks  Differences
	doubt  *contract.Doubt // what the coordinator asks its hubs; nil: nothing
	hubs   int             // that ask the coordinator
}

// take notes what the coordinator says, and tells a person what differs. asked is when it was asked.
func (s *shared) take(asked time.Time, status *PoolStatus, relays []Relay, idle []string) (effects []Effect) {
	theirs, lacks := map[string]bool{}, Differences{}
	for _, r := range status.Resources {
		theirs[r.Resource] = r.Ready
		if !slices.Contains(idle, r.Resource) &&
			!slices.ContainsFunc(relays, func(m Relay) bool { return m.Name == r.Resource }) {
			lacks.Hub = append(lacks.Hub, r.Resource)
		}
	}
	for i := range relays {
		name := relays[i].Name
		if _, ok := theirs[name]; !ok && !relays[i].Joins && !slices.Contains(status.Idle, name) {
			lacks.Coordinator = append(lacks.Coordinator, name)
		}
	}
	was := s.lacks
	s.known, s.at, s.theirs, s.idle, s.lacks = true, asked, theirs, status.Idle, lacks
	s.doubt, s.hubs = status.Doubt, status.Hubs
	tell := func(before, now []string, what string) {
		if len(now) > 0 && !slices.Equal(before, now) {
			effects = append(effects, Log{slog.LevelWarn, what, []any{"resources", now}})
		}
	}
	tell(was.Coordinator, lacks.Coordinator, "the coordinator does not have resources of --pool-scope-resources of this "+
		"hub: each hub takes them from the cloud")
	tell(was.Hub, lacks.Hub, "the coordinator has resources that this hub does not have in --pool-scope-resources: here "+
		"they are the cloud's, and this hub does not feed them")
	if len(was.Coordinator)+len(was.Hub) > 0 && len(lacks.Coordinator)+len(lacks.Hub) == 0 {
		effects = append(effects, Log{Level: slog.LevelInfo, Message: "hub and coordinator have the same resources"})
	}
	return effects
}

// missing reports whether the coordinator is known not to have a resource, not even if it is read.
func (s *shared) missing(r *Relay) bool {
	return s.without(r) && !slices.Contains(s.idle, r.Name)
}

// without reports whether the coordinator is known not to hold a resource. What it has begun to feed since it was
// asked, it has.
func (s *shared) without(r *Relay) bool {
	if _, has := s.theirs[r.Name]; has || !s.known {
		return false
	}
	given := r.From == role.Coordinator && !r.Failing && r.Since.After(s.at)
	return !given
}

// forget makes a resource count as not fresh there until the coordinator says that it is.
func (s *shared) forget(resource string) {
	if s.theirs[resource] {
		s.theirs[resource] = false
	}
}
