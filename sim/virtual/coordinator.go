package virtual

import (
	"context"
	"errors"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/lead"
	"github.com/weir-edge/weir/impl/member"
)

const freshWithin = 30 * time.Second

// Coordinator is weir-coordinator: Leases, the real fence, and a relay that is fed from the leader, by the steps of
// package lead.
type Coordinator struct {
	process
	pool     *Pool
	leases   leases
	server   *server
	saved    saved
	feeder   *feeder
	idle     bool          // as a Hub's
	leader   member.Leader // that is read
	origin   *origin       // at it; nil: nobody is read
	run      int           // grows when another one is
	patience time.Duration
	pulse    *stream
	bars     *lead.Bars
}

// boot starts it. Without its disk it begins a new life.
func (c *Coordinator) boot(disk bool) {
	c.start()
	if !disk {
		c.leases.wipe()
		c.pool.at(LeaseOp{Kind: "wipe"})
		c.saved = saved{}
	}
	c.leader, c.origin, c.pulse, c.patience, c.bars = member.Leader{}, nil, nil, member.PulseAwaited, &lead.Bars{}
	c.run++
	c.relays(false)
	c.saved.restore(c.server)
	c.keep()
	c.hear(&member.Rounds{})
	c.leases.boot(c.server, c.moved, c.bars)
	c.moved()
}

// relays makes the relay, and what feeds it.
func (c *Coordinator) relays(late bool) {
	c.server, c.idle = newServer(c.loop, late), false
	c.pool.judge.fresh("coordinator")
	c.feeder = &feeder{
		process: &c.process, pool: c.pool, server: c.server,
		trace: func(format string, args ...any) { c.pool.trace("coordinator", format, args...) },
	}
	c.feeder.took = func() {
		c.pool.judge.reached("coordinator", c.server)
		c.server.changed()
	}
}

// rest and read are as a Hub's.
func (c *Coordinator) rest() {
	if !c.up || c.frozen || c.idle || len(c.server.taps) > 0 || c.server.Status().Joins {
		return
	}
	c.pool.trace("coordinator", "nobody reads")
	c.feeder.use(nil)
	c.relays(true)
	c.idle, c.saved = true, saved{}
}

func (c *Coordinator) read() *server {
	if c.idle && c.up {
		c.idle = false
		c.pool.trace("coordinator", "somebody reads")
		c.feeder.use(c.origin)
	}
	return c.server
}

func (c *Coordinator) keep() {
	c.after(savePeriod, func() {
		if !c.idle {
			c.saved.keep(c.server)
		}
		c.keep()
	})
}

// ready reports whether its relay is fresh. Nobody waits for one that is not read, or has just come.
func (c *Coordinator) ready() bool { return c.idle || c.server.Status().Joins || c.fresh() }

func (c *Coordinator) fresh() bool {
	s := c.server.Status()
	return s.Fresh(c.server.clock.Now(), freshWithin)
}

// status is what it says of itself.
func (c *Coordinator) status() *member.PoolStatus {
	s := c.server.Status()
	shown := &member.PoolStatus{Incarnation: c.leases.election.Fence.Incarnation, Ready: c.ready()}
	for _, h := range c.pool.hubs {
		if h.up {
			shown.Hubs++
		}
	}
	if c.idle {
		shown.Idle = []string{c.server.Resource().String()}
		return shown
	}
	r := member.PoolResource{
		Resource: c.server.Resource().String(), Synced: s.Synced, Ready: c.fresh(), Version: s.Version,
		History: s.History.Number,
	}
	if c.feeder.up != nil {
		r.Feeder = c.leader.Node
	}
	shown.Resources = []member.PoolResource{r}
	return shown
}

// moved reads whoever leads now.
func (c *Coordinator) moved() {
	now := c.leases.election.Fence.Leader()
	if now == c.leader {
		return
	}
	c.run++
	c.leader = now
	if c.pulse != nil {
		c.pulse.close()
		c.pulse = nil
	}
	if c.origin = nil; now == (member.Leader{}) {
		c.feeder.use(nil)
		return
	}
	c.pool.trace("coordinator", "reads %s under %v", now.Node, now.Term)
	h, err := c.pool.hub(now.Node)
	if err != nil {
		panic(err)
	}
	c.origin = &origin{
		name: now.Node, l: h.fromCoordinator, relay: h.read, p: &h.process,
		admit:   func() error { return c.leases.election.Fence.Admit(now) },
		changes: func() { c.pool.judge.effective(now) },
	}
	if !c.idle {
		c.feeder.use(c.origin)
	}
	patience := c.patience
	c.patience = contract.PulseSilence
	c.follow(h, member.NewFollow(c.server.clock.Now(), patience))
}

// follow keeps the connection to the leader's hub. If it cannot, the leader loses its Lease.
func (c *Coordinator) follow(h *Hub, f *member.Follow) {
	run, who, beat := c.run, c.leader, false
	ended := func(err error) {
		if c.run != run {
			return
		}
		how := member.Pulse{Now: c.server.clock.Now(), Beat: beat, Refused: errors.Is(err, errRefused)}
		c.pool.given(how)
		if !f.Ended(how) {
			c.after(member.PulseRetry, func() {
				if c.run == run {
					c.follow(h, f)
				}
			})
			return
		}
		c.pool.trace("coordinator", "the hub of %s is %s: its Lease is free", who.Node, f.Reason())
		if f.Bars() {
			c.bars.Add(who.Node, c.server.clock.Now())
		}
		before := c.leases.read(contract.ElectionLease)
		must(c.leases.election.Free(context.Background(), who))
		c.freed(before)
	}
	s := h.fromCoordinator.openStream(func(s *stream) {
		h.lead.pulse(s)
		s.send(down, func() { beat = true })
	}, ended)
	c.pulse = s
	c.after(f.Lasts(c.server.clock.Now()), func() {
		if c.run == run && c.pulse == s && !beat {
			s.close()
			ended(errQuiet)
		}
	})
}
