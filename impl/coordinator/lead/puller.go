package lead

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

// freeTimeout is for the Leases to answer.
const freeTimeout = 5 * time.Second

// Puller keeps the relays of a coordinator fed. See the package comment.
type Puller struct {
	PullConfig
	poke chan struct{} // something changed
	held chan struct{} // a holder has written its Lease here

	lag lag

	mu      sync.Mutex
	from    origin
	feeders map[*relay.Relay]*source.Feeder
}

// origin is where the relays are fed from; the zero value is from nowhere.
type origin struct {
	replica string
	leader  member.Leader
	up      *hop.Upstream
}

// NewPuller checks nothing: all of a Config is given by the one that makes a coordinator.
func NewPuller(c PullConfig) *Puller {
	return &Puller{
		PullConfig: c, poke: make(chan struct{}, 1), held: make(chan struct{}, 1), feeders: map[*relay.Relay]*source.Feeder{},
	}
}

// Feed feeds a relay from the one that is read, until ctx ends.
func (p *Puller) Feed(ctx context.Context, r *relay.Relay) error {
	f, err := source.NewFeeder(source.Config{Relay: r, Clock: p.Clock, Logger: p.Logger})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.feeders[r] = f
	f.Use(p.from.up)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.feeders, r)
	}()
	return f.Run(ctx)
}

// feeder is that of a relay, nil if nothing feeds it.
func (p *Puller) feeder(r *relay.Relay) *source.Feeder {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.feeders[r]
}

// Moved tells that somebody else may have to be read. It never blocks.
func (p *Puller) Moved() { signal(p.poke) }

// Held tells that a holder has written its Lease here. It never blocks.
func (p *Puller) Held() { signal(p.held) }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run pulls until ctx ends. What is pulled, Feed does.
func (p *Puller) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if p.Replicas != nil {
		g.Go(func() error { return p.claim(ctx) })
	}
	g.Go(func() error {
		p.lag.watch(ctx, p.Clock)
		return nil
	})
	g.Go(func() error {
		patience, end := member.PulseAwaited, p.read(ctx, origin{}, 0)
		for ctx.Err() == nil {
			if next := p.choose(); next.whence() != p.now().whence() {
				end()
				end = p.read(ctx, next, patience)
				if next.leader.Node != "" {
					patience = contract.PulseSilence
				}
			}
			select {
			case <-p.poke:
			case <-ctx.Done():
			}
		}
		end()
		return nil
	})
	return g.Wait()
}

// whence is an origin without the way there.
func (o origin) whence() origin {
	o.up = nil
	return o
}

func (p *Puller) now() origin {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.from
}

// choose tells who is to be read.
func (p *Puller) choose() origin {
	if p.Replicas == nil {
		return origin{leader: p.Fence.Leader()}
	}
	switch name, up := p.Replicas.Reads(); {
	case up != nil:
		return origin{replica: name, up: up}
	case name != "":
		return origin{leader: p.Fence.Leader()}
	}
	return origin{} // nobody has claimed yet
}

// read feeds all relays from an origin until end is called.
func (p *Puller) read(ctx context.Context, o origin, patience time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	var l *hop.Line
	if o.leader.Node != "" {
		l = p.Line(o.leader.Node, o.leader.Address)
		o.up = l.Upstream()
		o.up.Admit = func() error { return p.Fence.Admit(o.leader) }
	}
	p.mu.Lock()
	p.from = o
	for _, f := range p.feeders {
		f.Use(o.up)
	}
	p.mu.Unlock()
	if o.up != nil && p.Beside != nil {
		reading.Go(func() { p.Beside(ctx, o.up) })
	}
	switch {
	case l != nil:
		p.Logger.Info("the leader is read", "node", o.leader.Node, "address", o.leader.Address,
			"term", o.leader.Term.String())
		reading.Go(func() { p.follow(ctx, l, o.leader, patience) })
	case o.up == nil:
		reading.Go(func() { p.fallback().run(ctx) })
	}
	return func() {
		cancel()
		reading.Wait()
	}
}

// follow keeps the connection to the leader's hub. If it cannot, the leader loses its Lease.
func (p *Puller) follow(ctx context.Context, l *hop.Line, who member.Leader, patience time.Duration) {
	f := member.NewFollow(p.Clock.Now(), patience)
	for ctx.Err() == nil {
		beat, err := l.Pulse(ctx, f.Lasts(p.Clock.Now()))
		if ctx.Err() != nil {
			return
		}
		p.Logger.Debug("the leader's hub is not heard", "node", who.Node, "beat", beat, "err", err)
		if f.Ended(member.Pulse{
			Now: p.Clock.Now(), Beat: beat, Refused: errors.Is(err, syscall.ECONNREFUSED), Late: p.lag.lately(),
		}) {
			p.release(ctx, who, f, err)
		} else {
			process.Pause(ctx, p.Clock, member.PulseRetry)
		}
	}
}

// release takes the Lease from a leader. What shows that it is free ends ctx, before this has the answer.
func (p *Puller) release(ctx context.Context, who member.Leader, f *member.Follow, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeTimeout)
	defer cancel()
	mine, err := true, error(nil)
	if p.Replicas != nil {
		mine, err = p.Replicas.Mine(ctx)
	}
	if err == nil && !mine {
		p.Logger.Info("the leader went to another replica", "node", who.Node, "term", who.Term.String(), "pulse", f.Reason())
		return
	}
	if err == nil {
		if f.Bars() {
			p.Bars.Add(who.Node, p.Clock.Now())
		}
		err = p.Leases.Free(ctx, who)
	}
	if err != nil {
		p.Logger.Warn("the election lease of a leader that cannot be read cannot be freed: others wait until it expires",
			"node", who.Node, "why", why, "err", err)
		return
	}
	p.Logger.Info("the leader is dead or cut off: its Lease is free", "node", who.Node, "term", who.Term.String(),
		"pulse", f.Reason(), "err", why)
	p.Freed(f.Reason())
}

// claim lets the other replicas know that the leader uses this one.
func (p *Puller) claim(ctx context.Context) error {
	for {
		select {
		case <-p.held:
		case <-ctx.Done():
			return nil
		}
		if l := p.Fence.Leader(); l.Node != "" {
			if err := p.Replicas.Claim(ctx, l.Term); err != nil && ctx.Err() == nil {
				p.Logger.Warn("the leader uses this replica, and the others cannot be told", "err", err)
			}
		}
	}
}

// Feeder tells who feeds a relay: a node, or another replica; "" if nobody does.
func (p *Puller) Feeder(r *relay.Relay) (node, replica string) {
	f := p.feeder(r)
	if f == nil {
		return "", ""
	}
	s, o := f.Status(), p.now()
	switch {
	case s.Upstream == "" || s.LastError != "" || s.Since.IsZero():
		return "", ""
	case o.replica != "":
		return "", o.replica
	}
	return s.Upstream, ""
}

// Mismatches counts the differences that did not fit what a relay holds: see source.Status.
func (p *Puller) Mismatches(r *relay.Relay) int {
	if f := p.feeder(r); f != nil {
		return f.Status().Mismatches
	}
	return 0
}

// fallback is what runs while nobody is read.
func (p *Puller) fallback() *fallback {
	return &fallback{p.PullConfig, p.feeder, func() bool { return p.Upstream() != nil }}
}

// Upstream is who is read, nil if nobody is.
func (p *Puller) Upstream() *hop.Upstream { return p.now().up }
