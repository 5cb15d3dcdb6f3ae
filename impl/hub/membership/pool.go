package membership

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

// Pool is the hub's part in its pool: it steps a member with what it observes, and does what the member says. One
// goroutine owns the member; requests run beside it and report to it.
type Pool struct {
	*Config
	member   *member.Member
	checker  *uplink.Checker // of the coordinator
	leases   *coordinator.Leases
	doubt    *doubt
	lead     *lead
	requests *requests

	designated atomic.Int32 // role.Designation
	began      time.Time
	watched    chan coordinator.LeaseEvent
	poke       chan struct{} // something may have changed
	view       atomic.Pointer[member.View]

	mu     sync.Mutex
	denied []string // resources that a source does not give, of which the member has yet to hear
}

// New makes a hub's part in a pool that it has not met yet.
func New(c Config) (*Pool, error) {
	p := &Pool{
		Config: &c, began: c.Clock.Now(), watched: make(chan coordinator.LeaseEvent), poke: make(chan struct{}, 1),
	}
	var err error
	p.member, err = member.New(member.Config{Role: c.Role, MaxAge: c.MaxAge, Timeout: c.Policy.Timeout}, p.began)
	if err != nil {
		return nil, err
	}
	view := p.member.View()
	p.view.Store(&view)
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
	return p, nil
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
	return p.checker.OK() && !p.Cloud.Healthy() && p.Snapshot().Role != role.Leader
}

// Snapshot is the state of the role machine after the last step.
func (p *Pool) Snapshot() role.Snapshot { return p.view.Load().Snapshot }

// Cause is why the hub is Pending, if it is, as one word of package digest.
func (p *Pool) Cause() string {
	if len(p.Coordinator.Replicas()) == 0 {
		return digest.Unconfigured
	}
	return cmp.Or(p.checker.Judgement().Cause, digest.Starting)
}

// now is the machine's clock: monotonic, since the start.
func (p *Pool) now() time.Duration { return p.Clock.Since(p.began) }

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

// Changed tells the member to look again. It never blocks.
func (p *Pool) Changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// Denied takes that a source has said that it does not give a resource.
func (p *Pool) Denied(resource string) {
	p.mu.Lock()
	p.denied = append(p.denied, resource)
	p.mu.Unlock()
	p.Changed()
}

// Contradict takes that the cloud contradicted while a relay was being fed from the pool; see source.Config.Doubt.
func (p *Pool) Contradict(resource string, err error) {
	// no other hub took that up either.
	p.doubt.suspect(contract.Doubt{Leader: p.doubt.leader(), Resource: resource, Held: math.MaxInt64}, err)
}

// Vouch reports whether a relay is shown by a leader hub that hears the cloud, and is fresh; nil: one would be.
func (p *Pool) Vouch(r *relay.Relay) bool {
	standing, _ := p.Desk.Standing.Now()
	if r == nil {
		return standing.Leader
	}
	s := r.Status()
	return standing.Leader && s.Denied == "" && s.Fresh(p.Clock.Now(), p.MaxAge)
}
