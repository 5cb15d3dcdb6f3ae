package hub

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

const (
	cloudLook = 500 * time.Millisecond // how often a hub with streams from the cloud looks whether they are fresh, or silent
	lastWords = 2 * time.Second        // for giving back the Lease at the end
)

// pool is the hub's part in its pool: it steps the role machine with what it observes and does what the machine says.
// One goroutine owns the machine; requests run beside it and report to it.
type pool struct {
	machine     *role.Machine
	coordinator *coordinator
	checker     *checker
	leases      *leases
	silence     *silenceOf // of the streams from the cloud
	proof       *proof
	cloudOK     func() bool
	wantCloud   func(within time.Duration)
	holds       func(now time.Time, in *role.Input) // fills in what is of the relays
	feed        *feed
	doubt       *doubt
	mirror      *mirror
	forwarding  *forwarding
	shared      *shared
	detours     *role.Detours
	feeders     []*feeder
	maxAge      time.Duration       // of what the coordinator shows while the leader is fresh
	use         func([]role.Source) // of each resource
	using       []role.Source
	replica     *use // whose upstream the relays got last
	clock       clock.WithTicker
	logger      *slog.Logger
	metrics     *metrics
	timeout     time.Duration // of a probe
	limit       time.Duration // of one request: the same; patient tests wait longer

	began   time.Time
	results chan role.Result
	watched chan leaseEvent
	poke    chan struct{} // something may have changed
	snap    atomic.Pointer[role.Snapshot]
	fresh   atomic.Bool
	tried   atomic.Int64 // elections
	won     atomic.Int64
}

// alone tells whether the hub knows nobody who hears from the cloud.
func (p *pool) alone() bool {
	return p.checker.ok() && !p.cloudOK() && p.snapshot().Role != role.Leader
}

func (p *pool) snapshot() role.Snapshot { return *p.snap.Load() }

// now is the machine's clock: monotonic, since the start.
func (p *pool) now() time.Duration { return p.clock.Since(p.began) }

// changed tells the machine to look again. It never blocks.
func (p *pool) changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// run takes part until ctx ends, and then gives back what the hub holds.
func (p *pool) run(ctx context.Context) error {
	probing, stopProbing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopProbing()
	// Requests outlive ctx for a moment: the last one gives back the Lease.
	asking, stopAsking := context.WithCancel(context.WithoutCancel(ctx))
	g, _ := errgroup.WithContext(asking)
	g.Go(func() error { return p.checker.run(probing) })
	g.Go(func() error { return p.leases.run(probing) })
	g.Go(func() error { return p.feed.run(asking) })
	g.Go(func() error { return p.shared.run(probing) })
	g.Go(func() error { return p.doubt.run(probing) })
	g.Go(func() error { return p.mirror.run(probing) })
	g.Go(func() error { return p.mirror.announce(probing, p.alone) })
	g.Go(func() error { return p.forwarding.run(probing) })
	p.loop(ctx, asking, g)
	stopProbing()
	stopAsking()
	return g.Wait()
}

func (p *pool) loop(ctx, asking context.Context, g *errgroup.Group) {
	var in role.Input
	ended := ctx.Done()
	var deadline <-chan time.Time
	for {
		in.Now, in.Coordinator, in.Cloud = p.now(), p.checker.ok(), p.cloudOK()
		in.Silent = p.silence.lasts(p.clock.Now(), p.snapshot().Source == role.Cloud)
		p.proof.noticed(p.clock.Now(), p.snapshot().Leader == "" || showsFree(in))
		in.Unproven = !p.proof.holds(p.clock.Now(), p.snapshot().Source == role.Cloud)
		in.Fresh, in.Unable = p.feed.look(p.clock.Now())
		in.Doubted = p.doubt.holds()
		p.holds(p.clock.Now(), &in)
		p.fresh.Store(in.Fresh)
		out := p.machine.Step(in)
		in.Result, in.Election, in.Sync = nil, nil, nil
		p.publish(out.Snapshot)
		detoured := p.point(in, out.Snapshot)
		p.wantCloud(p.hurry(in, out.Snapshot))
		for _, a := range out.Actions {
			switch a.Kind {
			case role.Feed:
				p.feed.start()
			case role.StopFeed:
				p.feed.stop()
			default:
				g.Go(func() error { p.request(asking, a); return nil })
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
		timer := p.clock.NewTimer(max(wait, 0))
		select {
		case <-timer.C():
		case <-p.poke:
		case r := <-p.results:
			in.Result = &r
		case e := <-p.watched:
			if e.name == contract.ElectionLease {
				in.Election = &e.record
			} else {
				in.Sync = &e.record
			}
		case <-ended:
			in.Stop, ended = true, nil
			deadline = p.clock.After(lastWords)
		case <-deadline:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// hurry is within what time the machine has to know about the cloud: while nobody leads, soon, because only who reaches the
// cloud may. A hub that starts in a pool that is fed has time until its clients ask something.
func (p *pool) hurry(in role.Input, s role.Snapshot) time.Duration {
	switch {
	case !in.Coordinator || s.Ready:
		return 0
	case s.Leader == "":
		return 2 * p.timeout
	}
	return 4 * p.timeout
}

// showsFree tells whether an input that the machine has not seen yet shows that nobody holds the election Lease.
func showsFree(in role.Input) bool {
	r := in.Result
	return in.Election != nil && in.Election.Holder == "" ||
		r != nil && r.Outcome == role.OK && (r.Kind == role.ReadElection || r.Kind == role.Release) && r.Lease.Holder == ""
}

func (p *pool) publish(s role.Snapshot) {
	was := p.snapshot()
	p.snap.Store(&s)
	if s.Role != was.Role {
		p.logger.Info("role changed", "role", s.Role.String(), "was", was.Role.String(), "reason", s.Reason, "leader", s.Leader)
	}
	if s.Ready != was.Ready {
		p.logger.Info("readiness of the coordinator changed", "ready", s.Ready)
	}
	if s.Source != was.Source {
		p.logger.Info("relays change their source", "source", s.Source.String(), "was", was.Source.String())
	}
}

// point points each feeder to its source, and returns when that may change.
func (p *pool) point(in role.Input, s role.Snapshot) (wake time.Duration) {
	now, resources, astray := p.clock.Now(), make([]role.Resource, len(p.feeders)), false
	for i, f := range p.feeders {
		st := f.relay.Status()
		resources[i] = role.Resource{
			Synced: st.Synced, Fresh: st.Fresh(now, p.maxAge), Denied: f.lacked() || p.shared.missing(f.resource), There: p.shared.there(f.resource),
		}
	}
	using, wake := p.detours.Step(in, s, resources)
	for i, f := range p.feeders {
		if using[i] == s.Source {
			if p.using != nil && p.using[i] != s.Source {
				f.refused.Store(nil) // it is asked anew
			}
			continue
		}
		astray = true
		if p.using == nil || p.using[i] == s.Source {
			p.shared.forget(f.resource)
			p.logger.Warn("the pool's cache does not have a resource: it is fed from the cloud", "resource", f.resource)
		}
	}
	p.shared.astray.Store(astray)
	if replica := p.coordinator.inUse(); replica != p.replica || !slices.Equal(using, p.using) {
		p.replica, p.using = replica, using
		p.use(using)
	}
	return wake
}

// request does an action and reports its result.
func (p *pool) request(ctx context.Context, a role.Action) {
	r := role.Result{Kind: a.Kind, Sent: p.now()}
	limit, cancel := context.WithTimeout(ctx, p.limit)
	err := p.perform(limit, a, &r)
	cancel()
	if err != nil && r.Outcome == role.OK {
		r.Outcome = role.Failed
		p.checker.kick() // perhaps the coordinator is away
	}
	if err != nil {
		p.logger.Debug("request to the coordinator", "what", a.Kind.String(), "outcome", r.Outcome.String(), "err", err)
	}
	if a.Kind == role.Acquire {
		p.tried.Add(1)
		if r.Outcome == role.OK {
			p.won.Add(1)
		}
	}
	select {
	case p.results <- r:
	case <-ctx.Done():
	}
}

func (p *pool) perform(ctx context.Context, a role.Action, r *role.Result) (err error) {
	var conflict bool
	switch a.Kind {
	case role.ReadElection:
		r.Lease, err = p.coordinator.readLease(ctx, contract.ElectionLease)
	case role.ReadSync:
		r.Lease, err = p.coordinator.readLease(ctx, contract.InformerSync)
	case role.RenewSync:
		r.Lease, conflict, err = p.coordinator.writeLease(ctx, contract.InformerSync, a.Lease, false)
	case role.Acquire, role.Renew, role.Release:
		r.Lease, conflict, err = p.coordinator.writeLease(ctx, contract.ElectionLease, a.Lease, a.Kind == role.Acquire)
	}
	if conflict {
		r.Outcome = role.Conflict
	}
	if err == nil && (a.Kind == role.Acquire || a.Kind == role.ReadStatus) {
		// Read after the write: if the coordinator loses its disk in between, the term names a life that never saw the Lease.
		var s *poolStatus
		if s, err = p.coordinator.status(ctx); err == nil {
			r.Incarnation, r.Ready = s.Incarnation, s.Ready
		}
	}
	return err
}
