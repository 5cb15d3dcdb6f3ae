package member

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

const (
	cloudLook = 500 * time.Millisecond // how often a hub with streams from the cloud looks whether they are fresh, or silent
	lastWords = 2 * time.Second        // for giving back the Lease at the end
)

// Pool is the hub's part in its pool: it steps the role machine with what it observes and does what the machine says.
// One goroutine owns the machine; requests run beside it and report to it.
type Pool struct {
	*Config
	machine  *role.Machine
	checker  *uplink.Checker // of the coordinator
	leases   *coordinator.Leases
	proof    *proof
	holding  *holding
	feed     *feed
	doubt    *doubt
	shared   *shared
	aim      *aim
	requests *requests
	named    *named

	designated atomic.Int32 // role.Designation
	began      time.Time
	watched    chan coordinator.LeaseEvent
	poke       chan struct{} // something may have changed
	snap       atomic.Pointer[role.Snapshot]
	fresh      atomic.Bool
}

// New makes a hub's part in a pool that it has not met yet.
func New(c Config) (*Pool, error) {
	machine, err := role.New(c.Role)
	if err != nil {
		return nil, err
	}
	p := &Pool{Config: &c, machine: machine, began: c.Clock.Now(), watched: make(chan coordinator.LeaseEvent), poke: make(chan struct{}, 1)}
	p.snap.Store(&role.Snapshot{Reason: "starting"})
	p.checker = uplink.NewChecker(uplink.CheckerConfig{
		Name: c.Coordinator.Name(), Policy: c.Policy.Near(), Clock: c.Clock, Logger: c.Logger.With("at", "coordinator"), Probe: c.Coordinator.Healthz, Several: c.Coordinator.Several,
		Changed: p.judged,
	})
	p.leases = &coordinator.Leases{Client: c.Coordinator, Events: p.watched, Broke: p.checker.Kick}
	p.proof = &proof{heard: c.Cloud.LastHeard, ask: c.Cloud.Ask, logger: c.Logger}
	p.holding = &holding{relays: c.Sources.Relays, maxAge: c.MaxAge, grace: c.Role.Grace, stale: map[*relay.Relay]uint64{}}
	p.shared = &shared{Config: p.Config, reachable: p.checker.OK, changed: p.Changed}
	p.named = &named{Config: p.Config, stuck: stuck{patience: c.MaxAge}, shun: p.shun}
	p.aim = &aim{
		coordinator: c.Coordinator, sources: c.Sources, shared: p.shared, detours: role.NewDetours(c.Role), maxAge: 2 * c.MaxAge,
		clock: c.Clock, logger: c.Logger,
	}
	p.feed = &feed{Config: p.Config, ahead: ahead{Config: p.Config}, shared: p.shared, changed: p.Changed, leads: make(chan leading)}
	p.doubt = &doubt{
		Config: p.Config, leader: p.leader, asked: p.shared.asked, tell: p.tell, shun: p.shun, changed: p.Changed,
	}
	p.requests = &requests{
		coordinator: c.Coordinator, limit: c.Policy.Limit, now: p.now, failed: p.checker.Kick, logger: c.Logger, results: make(chan role.Result),
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

// alone tells whether the hub knows nobody who hears from the cloud.
func (p *Pool) alone() bool {
	return p.checker.OK() && !p.Cloud.Healthy() && p.Snapshot().Role != role.Leader
}

// Snapshot is what the machine said last.
func (p *Pool) Snapshot() role.Snapshot { return *p.snap.Load() }

// now is the machine's clock: monotonic, since the start.
func (p *Pool) now() time.Duration { return p.Clock.Since(p.began) }

// leader is the node of who feeds the pool, as this hub sees it.
func (p *Pool) leader() string {
	if node := p.Coordinator.Leader(); node != "" {
		return node
	}
	return contract.NodeOfIdentity(p.Snapshot().Leader)
}

// tell tells the coordinator of a doubt. Leader hubs are told nothing: each hub leaves by itself whom the cloud contradicts.
func (p *Pool) tell(ctx context.Context, d contract.Doubt) (refused bool, err error) {
	if p.Coordinator.Leader() != "" {
		return false, nil
	}
	return p.Coordinator.Doubt(ctx, d)
}

// shun leaves a leader hub alone that the cloud contradicts, and tells whether it is one.
func (p *Pool) shun(node string) bool {
	if p.Coordinator.Leader() != node {
		return false
	}
	p.Coordinator.Shun(node)
	p.checker.Kick()
	return true
}

// Follow says who feeds the pool, and where that is: the coordinator, or leader hubs. What clients have open goes on, and so do relays, by version.
func (p *Pool) Follow(by role.Designation, servers []coordinator.Server) {
	p.designated.Store(int32(by))
	if p.Coordinator.Set(servers) {
		p.Logger.Info("the pool is asked somewhere else", "server", p.Coordinator.InUse().URL.Host, "of", len(servers))
	}
	p.Changed()
	p.checker.Kick()
}

// Changed tells the machine to look again. It never blocks.
func (p *Pool) Changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// Denied takes that a source has said that it does not give a resource.
func (p *Pool) Denied(resource string) {
	p.shared.forget(resource)
	p.Changed()
}

// Contradict takes that the cloud contradicted while a relay was being fed from the pool; see source.Config.Doubt.
func (p *Pool) Contradict(resource string, err error) {
	p.doubt.suspect(contract.Doubt{Leader: p.doubt.leader(), Resource: resource, Held: math.MaxInt64}, err) // no other hub took that up either
}

// Run takes part until ctx ends, and then gives back what the hub holds. told tells that the hub ends because it was told to, and not because something failed.
func (p *Pool) Run(ctx context.Context, told func() bool) error {
	probing, stopProbing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopProbing()
	// Requests outlive ctx for a moment: the last one gives back the Lease.
	asking, stopAsking := context.WithCancel(context.WithoutCancel(ctx))
	g, _ := errgroup.WithContext(asking)
	g.Go(func() error { return p.checker.Run(probing) })
	g.Go(func() error { return p.leases.Run(probing) })
	g.Go(func() error { return p.feed.run(asking) })
	g.Go(func() error { return p.shared.run(probing) })
	g.Go(func() error { return p.doubt.run(probing) })
	g.Go(func() error { return p.Mirror.Run(probing) })
	g.Go(func() error { return p.Mirror.Announce(probing, p.alone) })
	g.Go(func() error { return p.Forwarding.Run(probing) })
	p.loop(ctx, asking, g, told)
	stopProbing()
	stopAsking()
	return g.Wait()
}

func (p *Pool) loop(ctx, asking context.Context, g *errgroup.Group, told func() bool) {
	var in role.Input
	var heritage heritage
	ended := ctx.Done()
	var deadline <-chan time.Time
	for {
		in.Now, in.Coordinator, in.Cloud = p.now(), p.checker.OK(), p.Cloud.Healthy()
		in.Silent = p.Cloud.Silence().Lasts(p.Clock.Now(), p.Snapshot().Source == role.Cloud)
		in.Designated = role.Designation(p.designated.Load())
		p.proof.noticed(p.Clock.Now(), p.vacant(in))
		in.Unproven = !p.proof.holds(p.Clock.Now(), p.Snapshot().Source == role.Cloud)
		in.Fresh, in.Unable = p.feed.look(p.Clock.Now())
		in.Doubted = p.doubt.holds()
		p.holding.look(p.Clock.Now(), &in)
		p.named.look(p.Clock.Now(), &in, p.Snapshot())
		p.fresh.Store(in.Fresh)
		out := p.machine.Step(in)
		in.Result, in.Election, in.Sync = nil, nil, nil
		p.publish(out.Snapshot)
		p.named.show(in, out.Snapshot)
		holds := in.Designated == role.Elected && out.Snapshot.Leader == p.Role.Identity
		if heritage.due(in.Now, p.Role.LeaseDuration, holds, in.Stop && told()) {
			g.Go(func() error { p.leaveIdentity(); return nil })
		}
		detoured := p.aim.point(in, out.Snapshot)
		p.Cloud.Want(p.hurry(in, out.Snapshot))
		for _, a := range out.Actions {
			switch a.Kind {
			case role.Feed:
				p.feed.start(in.Designated == role.Elected)
			case role.StopFeed:
				p.feed.stop()
			default:
				g.Go(func() error { p.requests.do(asking, a); return nil })
			}
		}
		if out.Snapshot.Done {
			return
		}
		wait := min(out.Wake, detoured) - p.now()
		if out.Snapshot.Source == role.Cloud {
			wait = min(wait, cloudLook)
		}
		if in.Unproven {
			wait = min(wait, proofLook)
		}
		timer := p.Clock.NewTimer(max(wait, 0))
		select {
		case <-timer.C():
		case <-p.poke:
		case r := <-p.requests.results:
			in.Result = &r
		case e := <-p.watched:
			if e.Name == contract.ElectionLease {
				in.Election = &e.Record
			} else {
				in.Sync = &e.Record
			}
		case <-ended:
			in.Stop, ended = true, nil
			deadline = p.Clock.After(lastWords)
		case <-deadline:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// hurry is within what time the machine has to know about the cloud: while nobody leads, soon, because only who reaches the
// cloud may. A hub that starts in a pool that is fed has time until its clients ask something.
func (p *Pool) hurry(in role.Input, s role.Snapshot) time.Duration {
	switch {
	case !in.Coordinator || s.Ready:
		return 0
	case s.Leader == "":
		return 2 * p.Policy.Timeout
	}
	return 4 * p.Policy.Timeout
}

// vacant tells whether this hub may have to lead, and nobody knows yet that it can.
func (p *Pool) vacant(in role.Input) bool {
	switch in.Designated {
	case role.Others:
		return false
	case role.Mine:
		return p.Snapshot().Role != role.Leader
	case role.Elected:
	}
	leader := p.Snapshot().Leader
	return leader == "" || leader == p.Role.Former || showsFree(in)
}

// showsFree tells whether an input that the machine has not seen yet shows that nobody holds the election Lease.
func showsFree(in role.Input) bool {
	r := in.Result
	return in.Election != nil && in.Election.Holder == "" ||
		r != nil && r.Outcome == role.OK && (r.Kind == role.ReadElection || r.Kind == role.Release) && r.Lease.Holder == ""
}

func (p *Pool) publish(s role.Snapshot) {
	was := p.Snapshot()
	p.snap.Store(&s)
	if s.Role != was.Role {
		p.Logger.Info("role changed", "role", s.Role.String(), "was", was.Role.String(), "reason", s.Reason, "leader", s.Leader)
	}
	if s.Ready != was.Ready {
		p.Logger.Info("readiness of the coordinator changed", "ready", s.Ready)
	}
	if s.Source != was.Source {
		p.Logger.Info("relays change their source", "source", s.Source.String(), "was", was.Source.String())
	}
}
