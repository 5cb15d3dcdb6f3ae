package membership

import (
	"cmp"
	"context"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

// Pool is the hub's part in its pool: it steps a member with what it observes, and does what the member says. One
// goroutine owns the member; requests run beside it and report to it.
type Pool struct {
	*Config
	*Member
	checker  *uplink.Checker // of the coordinator
	leases   *coordinator.Leases
	doubt    *doubt
	lead     *lead
	requests *requests

	watched chan coordinator.LeaseEvent
}

// New makes a hub's part in its pool: its member, and what that acts by.
func New(m *Member, c Config) *Pool {
	p := &Pool{Config: &c, Member: m, watched: make(chan coordinator.LeaseEvent)}
	p.checker = uplink.NewChecker(uplink.CheckerConfig{
		Name: c.Coordinator.Name(), Policy: c.Policy.Near(), Clock: c.Clock, Logger: c.Logger.With("at", "coordinator"),
		Probe: c.Coordinator.Healthz, Several: c.Coordinator.Several, Changed: p.judged,
	})
	p.leases = &coordinator.Leases{Client: c.Coordinator, Events: p.watched, Broke: p.checker.Kick}
	p.lead = &lead{c.Discovery, c.Forwarding, make(chan bool)}
	p.doubt = &doubt{
		Config: p.Config, leader: p.leader, tell: p.tell, shun: p.shun, changed: p.Changed,
		asked: func() *contract.Doubt { return p.view.Load().Asked },
		hubs:  func() int { return p.view.Load().Hubs },
	}
	p.requests = &requests{
		coordinator: c.Coordinator, limit: c.Policy.Limit, now: p.now, failed: p.checker.Kick, logger: c.Logger,
		results: make(chan role.Result), answers: make(chan member.Answer),
	}
	c.Cloud.Follow(p.Changed)
	return p
}

// Renew follows a change of credentials. What was refused may be granted now.
func (p *Pool) Renew() {
	p.Coordinator.Renew()
	p.checker.Kick()
}

// Close gives back the connections to the coordinator.
func (p *Pool) Close() { p.Coordinator.Close() }

// judged follows a change of what is known of the coordinator.
func (p *Pool) judged() {
	p.Changed()
	if p.checker.OK() {
		p.Sources.Retry()
	}
}

// alone reports whether the hub knows nobody who hears from the cloud.
func (p *Pool) alone() bool {
	return p.checker.OK() && !p.Cloud.Healthy() && !p.Leads()
}

// Cause is why the hub is Pending, if it is, as one word of package digest.
func (p *Pool) Cause() string {
	if len(p.Coordinator.Replicas()) == 0 {
		return digest.Unconfigured
	}
	return cmp.Or(p.checker.Judgement().Cause, digest.Starting)
}

// leader is the node that feeds the pool, as this hub sees it.
func (p *Pool) leader() string {
	if node := p.Coordinator.Leader(); node != "" {
		return node
	}
	return contract.NodeOfIdentity(p.Snapshot().Leader)
}

// tell tells the coordinator of a doubt. Leader hubs are told nothing: each hub by itself leaves one that the cloud
// contradicts.
func (p *Pool) tell(ctx context.Context, d contract.Doubt) (refused bool, err error) {
	if p.Coordinator.Leader() != "" {
		return false, nil
	}
	return p.Coordinator.Doubt(ctx, d)
}

// shun leaves a leader hub alone that the cloud contradicts, and reports whether it is one.
func (p *Pool) shun(node string) bool {
	if p.Coordinator.Leader() != node {
		return false
	}
	p.Coordinator.Shun(node)
	p.checker.Kick()
	return true
}

// Follow says who feeds the pool, and where that is: the coordinator, or leader hubs. What clients have open goes on,
// and so do relays, by version.
func (p *Pool) Follow(by role.Designation, servers []coordinator.Server) {
	p.designated.Store(int32(by))
	if p.Coordinator.Set(servers) {
		p.Logger.Info("the pool is asked somewhere else", "server", p.Coordinator.InUse().URL.Host, "of", len(servers))
	}
	p.Changed()
	p.checker.Kick()
}
