package membership

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

const lastWords = 2 * time.Second // for giving back the Lease at the end

// Run takes part until ctx ends, and then gives back what the hub holds. told reports whether the hub ends because it
// was told to, and not because something failed.
func (p *Pool) Run(ctx context.Context, told func() bool) error {
	probing, stopProbing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopProbing()
	// Requests outlive ctx for a moment: the last one gives back the Lease.
	asking, stopAsking := context.WithCancel(context.WithoutCancel(ctx))
	g, _ := errgroup.WithContext(asking)
	g.Go(func() error { return p.checker.Run(probing) })
	g.Go(func() error { return p.leases.Run(probing) })
	g.Go(func() error { return p.lead.run(asking) })
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
	var o member.Observation
	ended := ctx.Done()
	var deadline <-chan time.Time
	for {
		p.observe(&o)
		o.Told = o.Stop && told()
		effects := p.decides.Step(o)
		o.Result, o.Election, o.Sync, o.Answer = nil, nil, nil, nil
		p.publish(p.decides.View())
		wake := p.do(asking, g, effects)
		if p.Snapshot().Done {
			return
		}
		timer := p.Clock.NewTimer(max(wake.Sub(p.Clock.Now()), 0))
		select {
		case <-timer.C():
		case <-p.poke:
		case r := <-p.requests.results:
			o.Result = &r
		case a := <-p.requests.answers:
			o.Answer = &a
		case e := <-p.watched:
			if e.Name == contract.ElectionLease {
				o.Election = &e.Record
			} else {
				o.Sync = &e.Record
			}
		case <-ended:
			o.Stop, ended = true, nil
			deadline = p.Clock.After(lastWords)
		case <-deadline:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// do does what the member said, and returns when its next step is due.
func (p *Pool) do(asking context.Context, g *errgroup.Group, effects []member.Effect) (wake time.Time) {
	for _, e := range effects {
		switch e := e.(type) {
		case member.Wake:
			wake = e.At
		case member.Request:
			g.Go(func() error { p.requests.do(asking, e.Action); return nil })
		case member.AskStatus:
			g.Go(func() error { p.requests.status(asking); return nil })
		case member.Lead:
			p.lead.leads <- true
		case member.Retire:
			p.lead.leads <- false
		case member.Point:
			p.point(e.From)
		case member.AskAnew:
			p.feeder(e.Resource, (*relayed.Feeder).AskAnew)
		case member.Kick:
			p.feeder(e.Resource, func(f *relayed.Feeder) { f.Kick() })
		case member.AskCloud:
			p.Logger.Debug("nobody leads: asking whether the cloud is there")
			p.Cloud.Ask()
		case member.Hurry:
			p.Cloud.Want(e.Within)
		case member.Late:
			p.Cloud.Late(e.Is)
		case member.Shun:
			p.shun(e.Node)
		case member.Stand:
			p.Desk.Leases.Open(e.Open)
			p.Desk.Standing.Set(e.Standing)
		case member.LeaveIdentity:
			g.Go(func() error { p.leaveIdentity(); return nil })
		case member.Overrule:
			p.Sources.Overrule(e.History)
		case member.Renumber:
			p.feeder(e.Resource, func(f *relayed.Feeder) { f.Renumber(e.History) })
		case member.Verify:
			p.feeder(e.Resource, func(f *relayed.Feeder) {
				g.Go(func() error { p.verify(asking, f, e.Version); return nil })
			})
		case member.Log:
			p.Logger.Log(asking, e.Level, e.Message, e.Args...)
		}
	}
	return wake
}

// feeder does something with the feeder of a resource, if there is one.
func (p *Pool) feeder(resource string, do func(*relayed.Feeder)) {
	if f := p.Sources.Named(resource); f != nil {
		do(f)
	}
}

// point feeds each relay from its source.
func (p *Pool) point(from map[string]role.Source) {
	using := make(map[*relayed.Feeder]role.Source, len(from))
	for _, f := range p.Sources.All() {
		if where, ok := from[f.Resource]; ok {
			using[f] = where
		}
	}
	p.Sources.Use(using)
}

// verify asks the cloud whether it has reached a version.
func (p *Pool) verify(ctx context.Context, f *relayed.Feeder, version uint64) {
	limit, cancel := context.WithTimeout(ctx, sampleAnswer)
	defer cancel()
	if err := f.Ahead(limit, version); err != nil && ctx.Err() == nil {
		p.Logger.Warn("cannot know whether the coordinator can be ahead of this leader; trying again",
			"resource", f.Resource, "err", err)
	}
}

func (p *Pool) publish(v member.View) {
	was := p.Snapshot()
	p.view.Store(&v)
	if v.Role != was.Role {
		p.Logger.Info("role changed", "role", v.Role.String(), "was", was.Role.String(), "reason", v.Reason,
			"leader", v.Leader)
	}
	if v.Ready != was.Ready {
		p.Logger.Info("readiness of the coordinator changed", "ready", v.Ready)
	}
	if v.Source != was.Source {
		p.Logger.Info("relays change their source", "source", v.Source.String(), "was", was.Source.String())
	}
}
