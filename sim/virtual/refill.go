package virtual

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/role"
)

const refillLook = 2 * time.Second

// refill offers the coordinator what the hub holds while the cloud is away, by the steps of hub.refill and source.Offer.
func (h *Hub) refill() {
	h.after(refillLook+h.loop.jitter(refillLook), func() {
		h.offer()
		h.refill()
	})
}

func (h *Hub) offer() {
	st, c := h.server.Status(), h.pool.coord
	if !h.coordinator.ok || h.cloud.ok || h.snapshot().Role == role.Leader || !st.Synced {
		return
	}
	lacks := false
	h.toCoordinator.ask(requestTimeout, func() { lacks = c.lacks(st.History, st.Version) }, func(err error) {
		if err != nil || !lacks {
			return
		}
		version, items := h.server.list()
		now, era := h.server.Status(), h.server.era
		age, _ := st.Age(h.server.clock.Now())
		end := &wire.Event{Type: wire.Bookmark, Version: version, InitialEnd: true, Testimony: fmt.Sprintf("%d/%d/restored", version, age.Milliseconds())}
		h.toCoordinator.ask(requestTimeout, func() { c.takeOffer(h.name, now.History, era, end, items) }, func(error) {})
	})
}

// lacks tells whether nobody feeds the relay, and it is not at a version of a history.
func (c *Coordinator) lacks(in relay.History, version uint64) bool {
	st := c.server.Status()
	return !c.ready() && c.feed == nil && (!st.Synced || st.History.Number < in.Number || st.History.Number == in.Number && st.Version < version)
}

// takeOffer moves the relay forward to what a hub holds.
func (c *Coordinator) takeOffer(node string, in relay.History, era int, end *wire.Event, items []*wire.Object) {
	if !c.lacks(in, end.Version) {
		return
	}
	if err := relay.NewRefill(c.server.Relay).End(in, end, items); err != nil {
		c.pool.judge.fail("coordinator", "an offer of %s at %d: %v", node, end.Version, err)
		return
	}
	c.server.era = era
	c.pool.trace("coordinator", "refilled by %s at %d", node, end.Version)
	if c.ready() {
		c.pool.judge.fail("coordinator", "is ready by what %s held", node)
	}
	c.pool.judge.reached("coordinator", c.server)
	c.server.changed()
}
