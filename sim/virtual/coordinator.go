package virtual

import (
	"errors"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	pulseReturn = 250 * time.Millisecond
	freshWithin = 30 * time.Second
)

// Coordinator is weir-coordinator: Leases, the real fence, and a relay that the leader feeds.
type Coordinator struct {
	process
	pool   *Pool
	leases leases
	server *server
	saved  saved
	feed   *feeding   // the one that is taken
	pulse  *heartbeat // heard last
}

// feeding is one feed.
type feeding struct {
	node   string
	term   contract.Term
	s      *stream
	intake *relay.Intake
	items  []*wire.Object
	list   bool
	in     relay.History // of the cloud, that it is of
	era    int
	over   bool
}

// boot starts it. Without its disk it begins a new life.
func (c *Coordinator) boot(disk bool) {
	c.start()
	if !disk {
		c.leases.wipe()
		c.saved = saved{}
	}
	c.feed, c.pulse = nil, nil
	c.leases.boot(c.enforce)
	c.server = newServer(c.loop)
	c.saved.restore(c.server)
	c.pool.judge.fresh("coordinator")
	c.keep()
}

func (c *Coordinator) keep() {
	c.after(savePeriod, func() {
		c.saved.keep(c.server)
		c.keep()
	})
}

// ready tells whether its relay is fresh.
func (c *Coordinator) ready() bool {
	s := c.server.Status()
	return s.Fresh(c.server.clock.Now(), freshWithin)
}

// accept takes a feed, if the fence lets it in, and answers with the version reached.
func (c *Coordinator) accept(s *stream, node string, term contract.Term, in relay.History, era int, answer func(reached uint64, theirs relay.History, err error)) {
	if err := c.leases.fence.Open(term, node); err != nil {
		s.send(down, func() { answer(0, relay.History{}, err) })
		return
	}
	x := &feeding{node: node, term: term, in: in, era: era, s: s, intake: relay.NewIntake(c.server.Relay)}
	if before := c.feed; before != nil {
		if before.term.Version > term.Version {
			s.send(down, func() { answer(0, relay.History{}, &fence.RefusedError{Reason: "term", Message: "a later one feeds"}) })
			return
		}
		c.end(before, errors.New("replaced"))
	}
	c.feed = x
	s.broken[up] = c.in(func() { c.end(x, errBroken) })
	st := c.server.Status()
	reached := uint64(0)
	if st.Synced {
		reached = st.Version
	}
	c.pool.trace("coordinator", "feed of %s under %v begins at %d", node, term, reached)
	s.send(down, func() { answer(reached, st.History, nil) })
}

// mode tells how the feed goes on: all objects first, or the events behind the version reached.
func (x *feeding) mode(list bool) { x.list = list }

// take applies what a feed brings, by the steps of source.Receive.
func (c *Coordinator) take(x *feeding, ev *wire.Event) {
	if x.over {
		return
	}
	if err := c.leases.fence.Admit(x.term, x.node); err != nil {
		c.end(x, err)
		return
	}
	c.pool.judge.effective(x)
	var err error
	switch {
	case x.list && ev.Type == wire.Added:
		x.items = append(x.items, ev.Object)
		return
	case x.list && ev.InitialEnd:
		if err = x.intake.End(x.in, ev, x.items); err == nil {
			c.server.era = x.era
		}
		x.list, x.items = false, nil
	case x.in.Number != c.server.Status().History.Number:
		err = errHistory
	default:
		err = x.intake.Apply(ev)
	}
	if err != nil {
		c.end(x, err)
		return
	}
	c.pool.judge.reached("coordinator", c.server)
	c.server.changed()
}

// end ends a feed and tells its leader why.
func (c *Coordinator) end(x *feeding, why error) {
	if x.over {
		return
	}
	x.over = true
	if c.feed == x {
		c.feed = nil
	}
	c.pool.trace("coordinator", "feed of %s under %v ended: %v", x.node, x.term, why)
	x.s.close(down)
}

// enforce ends a feed that the fence no longer admits.
func (c *Coordinator) enforce() {
	if x := c.feed; x != nil {
		if err := c.leases.fence.Admit(x.term, x.node); err != nil {
			c.end(x, err)
		}
	}
}

// heartbeat is a leader's pulse as it is heard.
type heartbeat struct {
	node  string
	term  contract.Term
	beats int
	over  bool
}

// hear takes a pulse, and frees the Lease if it breaks or falls silent while the leader holds it.
func (c *Coordinator) hear(s *stream, node string, term contract.Term) {
	if c.leases.fence.Open(term, node) != nil {
		s.close(down)
		return
	}
	h := &heartbeat{node: node, term: term}
	c.pulse = h
	s.broken[up] = c.in(func() { c.silence(s, h, "broken") })
	c.beat(s, h)
}

func (c *Coordinator) beat(s *stream, h *heartbeat) {
	h.beats++
	beats := h.beats
	c.after(contract.PulseSilence, func() {
		if h.beats == beats {
			c.silence(s, h, "silent")
		}
	})
}

func (c *Coordinator) silence(s *stream, h *heartbeat, why string) {
	if h.over {
		return
	}
	h.over = true
	s.close(down)
	c.after(pulseReturn, func() {
		if c.pulse == h && c.leases.fence.Admit(h.term, h.node) == nil {
			c.pool.trace("coordinator", "pulse of %s %s: its Lease is free", h.node, why)
			c.leases.free()
		}
	})
}
