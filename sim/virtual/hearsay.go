package virtual

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// hear asks, while nobody leads, what the hubs hold: the relay is moved forward to the latest.
func (c *Coordinator) hear(rounds *member.Rounds) {
	wait := rounds.Wait()
	c.after(wait/2+c.loop.jitter(wait/2), func() {
		if !c.lacks() {
			rounds.Came() // package lead begins again when nobody leads
			c.hear(rounds)
			return
		}
		c.round(func(came bool) {
			if came {
				rounds.Came()
			}
			c.hear(rounds)
		})
	})
}

// lacks reports whether the relay may be moved forward at the word of a hub.
func (c *Coordinator) lacks() bool { return c.leader == (member.Leader{}) && !c.ready() }

// round asks all hubs once, and tells done whether anything came of it.
func (c *Coordinator) round(done func(came bool)) {
	var said []member.Offer
	waiting := len(c.pool.hubs)
	for _, h := range c.pool.hubs {
		var st relay.Status
		h.fromCoordinator.ask(requestTimeout, func() { st = h.server.Status() }, func(err error) {
			if err == nil {
				said = append(said, member.Offer{
					Node: h.name, Synced: st.Synced, Denied: st.Denied != "", History: st.History.Number, Version: st.Version,
				})
			}
			if waiting--; waiting > 0 {
				return
			}
			best := member.Latest(c.server.Status(), said)
			if best == nil || !c.lacks() {
				done(false)
				return
			}
			c.refill(best, done)
		})
	}
}

// refill moves the relay forward to what a hub holds.
func (c *Coordinator) refill(best *member.Offer, done func(came bool)) {
	h, err := c.pool.hub(best.Node)
	must(err)
	var in relay.History
	var era int
	var age time.Duration
	var items []*wire.Object
	end := &wire.Event{Type: wire.Bookmark, InitialEnd: true}
	h.fromCoordinator.ask(requestTimeout, func() {
		end.Version, items = h.server.list()
		st := h.server.Status()
		in, era = st.History, h.server.era
		age, _ = st.Age(h.server.clock.Now())
	}, func(err error) {
		s := c.server.Status()
		offer := []member.Offer{{Synced: end.Version != 0, History: in.Number, Version: end.Version}}
		if err != nil || !c.lacks() || member.Latest(s, offer) == nil {
			done(false)
			return
		}
		end.Testimony = fmt.Sprintf("%d/%d", end.Version, age.Milliseconds())
		if err := relay.NewRefill(c.server.Relay).End(in, end, items); err != nil {
			c.pool.judge.fail("coordinator", "the word of %s at %d: %v", h.name, end.Version, err)
			return
		}
		c.server.era = era
		c.pool.trace("coordinator", "refilled by %s at %d", h.name, end.Version)
		if c.ready() {
			c.pool.judge.fail("coordinator", "is ready by what %s held", h.name)
		}
		c.feeder.took()
		done(true)
	})
}
