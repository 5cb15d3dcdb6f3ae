package virtual

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	hearFirst = 2 * time.Second
	hearMost  = 30 * time.Second
)

// hear asks, while nobody leads, what the hubs hold, by the steps of package pull: the relay is moved forward to the
// latest.
func (c *Coordinator) hear(wait time.Duration) {
	c.after(wait/2+c.loop.jitter(wait/2), func() {
		if c.leader == (fence.Leader{}) && !c.ready() {
			for _, h := range c.pool.hubs {
				c.ask(h)
			}
		} else {
			wait = hearFirst / 2
		}
		c.hear(min(2*wait, hearMost))
	})
}

// lacks reports whether the relay is not at a version of a history, and may be moved there at the word of a hub.
func (c *Coordinator) lacks(in relay.History, version uint64) bool {
	st := c.server.Status()
	return c.leader == (fence.Leader{}) && !c.ready() &&
		(!st.Synced || st.History.Number == in.Number && st.Version < version)
}

func (c *Coordinator) ask(h *Hub) {
	var st relay.Status
	h.fromCoordinator.ask(requestTimeout, func() { st = h.server.Status() }, func(err error) {
		if err != nil || !st.Synced || !c.lacks(st.History, st.Version) {
			return
		}
		var version uint64
		var items []*wire.Object
		var age time.Duration
		var era int
		h.fromCoordinator.ask(requestTimeout, func() {
			version, items = h.server.list()
			st, era = h.server.Status(), h.server.era
			age, _ = st.Age(h.server.clock.Now())
		}, func(err error) {
			if err == nil && version != 0 {
				end := &wire.Event{
					Type: wire.Bookmark, Version: version, InitialEnd: true,
					Testimony: fmt.Sprintf("%d/%d", version, age.Milliseconds()),
				}
				c.take(h.name, st.History, era, end, items)
			}
		})
	})
}

// take moves the relay forward to what a hub holds.
func (c *Coordinator) take(node string, in relay.History, era int, end *wire.Event, items []*wire.Object) {
	if !c.lacks(in, end.Version) {
		return
	}
	if err := relay.NewRefill(c.server.Relay).End(in, end, items); err != nil {
		c.pool.judge.fail("coordinator", "the word of %s at %d: %v", node, end.Version, err)
		return
	}
	c.server.era = era
	c.pool.trace("coordinator", "refilled by %s at %d", node, end.Version)
	if c.ready() {
		c.pool.judge.fail("coordinator", "is ready by what %s held", node)
	}
	c.feeder.took()
}
