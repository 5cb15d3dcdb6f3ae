package member

import (
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

// named is what a hub knows in a pool without a coordinator. It is of the loop.
type named struct {
	*Config
	stuck stuck
	shun  func(node string) bool
}

// look fills in what the role machine has to know there.
func (n *named) look(now time.Time, in *role.Input, snap role.Snapshot) {
	if in.Designated == role.Elected {
		return
	}
	in.Shown = n.Coordinator.Shown()
	some, stale := false, false
	for _, r := range n.Sources.Relays() {
		s := r.Status()
		if s.Denied == "" && !s.Joins {
			fresh := s.Fresh(now, n.MaxAge)
			some, stale = some || fresh, stale || !fresh
		}
	}
	in.Fresh, in.Unable = some && !stale, false
	use := n.Coordinator.InUse()
	if n.stuck.look(now, use, snap.Source == role.Coordinator && in.Shown != "" && stale, in.Reached) {
		n.Logger.Warn("nothing fresh comes from a leader hub that says that it is fresh: another one is read", "leader", use.Node)
		n.shun(use.Node)
	}
}

// show tells the pool how this hub stands.
func (n *named) show(in role.Input, s role.Snapshot) {
	leads := in.Designated == role.Mine && s.Role == role.Leader
	n.Desk.Leases.Open(in.Designated == role.Mine)
	n.Desk.Standing.Set(contract.Standing{Leader: leads, Fresh: leads && in.Fresh})
}

// Vouch tells whether a relay is shown by a leader hub that hears the cloud, and is fresh.
func (p *Pool) Vouch(r *relay.Relay) bool {
	s := r.Status()
	standing, _ := p.Desk.Standing.Now()
	return standing.Leader && s.Denied == "" && s.Fresh(p.Clock.Now(), p.MaxAge)
}

// stuck finds a leader hub that says that what it shows is fresh, and from which nothing fresh comes: its own streams stand still and it does not know it, or it lies.
type stuck struct {
	patience time.Duration
	use      *coordinator.Use
	since    time.Time // nothing fresh came; zero: something did
	reached  uint64
}

// look tells, once, that it is so for longer than patience. What is not fresh and moves is catching up.
func (s *stuck) look(now time.Time, use *coordinator.Use, stale bool, reached uint64) bool {
	moved := use != s.use || reached != s.reached
	s.use, s.reached = use, reached
	switch {
	case !stale:
		s.since = time.Time{}
	case moved, s.since.IsZero():
		s.since = now
	case now.Sub(s.since) > s.patience:
		s.since = now
		return true
	}
	return false
}
