package heartbeat

import (
	"time"
)

const (
	// late is how much later than Slowest a heartbeat may come of a kubelet that renews each ten seconds.
	late = time.Second
	// keeps is of how many heartbeats a receipt may still come.
	keeps = 8
)

// release is a link that was handed in.
type release struct {
	period uint64
	at     time.Duration
}

// Cover decides for the hub of a node which heartbeats of its kubelet reach the cloud by the pool's roll call. A link
// is released for a heartbeat only. What counts as progress is when a heartbeat came of which a signed receipt says
// that the Lease was renewed for it: so the Lease has grown then or later, whatever clocks say. It is not safe for
// concurrent use.
type Cover struct {
	node string
	seed func() [16]byte

	chain    Chain
	anchored bool   // the cloud has the anchor
	period   uint64 // that is open, as far as is known

	beat     time.Duration
	slow     bool // the last two came too far apart
	released []release
	renewed  time.Duration // when the heartbeat came of the newest receipt
	ever     bool          // there is one

	sends  time.Duration // when the last heartbeat went to the cloud from this hub
	direct time.Duration // the same of the last one that it took
	stands time.Time     // its renewTime
}

// NewCover makes that of a node. Each call of seed gives another random one.
func NewCover(node string, seed func() [16]byte) *Cover { return &Cover{node: node, seed: seed} }

// Beat takes a heartbeat of the kubelet.
func (c *Cover) Beat(now time.Duration) {
	c.slow = c.beat > 0 && now-c.beat > Slowest+late
	c.beat = now
}

// Entry is what to hand in for the heartbeat that came last; without a period: nothing, there is no link for it.
func (c *Cover) Entry(reaches bool) Entry {
	e := Entry{Node: c.node}
	if n := len(c.released); !c.anchored || n > 0 && c.released[n-1].period >= c.period {
		return e
	}
	link, ok := c.chain.Link(c.period)
	if !ok {
		return e
	}
	if c.released = append(c.released, release{c.period, c.beat}); len(c.released) > keeps {
		c.released = c.released[1:]
	}
	e.Period, e.Link, e.Reaches = c.period, link, reaches
	return e
}

// Hear takes a receipt that is signed, and its roster. It reports whether a period is open that was not known.
func (c *Cover) Hear(r Receipt, roster string) (later bool) {
	if p, yes := r.Renewed(roster, c.node); yes {
		for _, x := range c.released {
			if x.period == p && (!c.ever || x.at > c.renewed) {
				c.renewed, c.ever = x.at, true
			}
		}
	}
	if later = r.Period > c.period; later {
		c.period = r.Period
		if c.chain.Ends(c.period) {
			c.chain, c.anchored, c.released = NewChain(c.node, c.seed(), c.period-1), false, nil
		}
	}
	return later
}

// Covered reports whether the pool brings the heartbeat that came last to the cloud. Else the hub passes it itself.
func (c *Cover) Covered() bool { return c.within(Lapse) && c.beat-c.direct < Prove }

// Calm reports whether the heartbeat that came last, if the hub passes it, may go a way that may be dead: with what
// comes after Stagger it is passed within Lapse.
func (c *Cover) Calm() bool { return c.within(Lapse - Stagger) }

// within reports whether receipts say that the pool brings this node's heartbeats to the cloud.
func (c *Cover) within(age time.Duration) bool {
	return c.anchored && c.ever && !c.slow && c.beat-c.renewed <= age
}

// Lapses is when the hub passes the heartbeat that came last itself, though it was left to the pool, unless a later
// receipt comes; false: another heartbeat is due before.
func (c *Cover) Lapses() (at time.Duration, ok bool) {
	at = c.renewed + Lapse
	return at, c.ever && at <= c.beat+Life
}

// Anchor is what the Lease of the node has to carry; "": nothing yet.
func (c *Cover) Anchor() string {
	if c.period == 0 {
		return ""
	}
	return c.chain.Anchor().String()
}

// Direct takes that the cloud took the heartbeat that this hub sent last, with which renewTime and anchor the Lease
// stands now. Time counts since it was sent: weir-manager may have seen the Lease long before the answer was here.
func (c *Cover) Direct(stands time.Time, anchor string) {
	c.direct, c.stands = c.sends, stands
	c.anchored = anchor != "" && anchor == c.Anchor()
}

// Shared reports whether others may write the node's Lease: then its version is not known here.
func (c *Cover) Shared() bool { return c.anchored }

// Least is the renewTime to send now, at least the node's own: greater than what weir-manager wrote since (Onward).
func (c *Cover) Least(now time.Duration, own time.Time) time.Time {
	c.sends = now
	since := now - c.direct
	if least := c.stands.Add(since - since/drift); c.period > 0 && own.Before(least) {
		return least.Truncate(tick)
	}
	return own
}

// Period is the newest that is known to be open.
func (c *Cover) Period() uint64 { return c.period }

// Renewed is when the heartbeat came of the newest receipt; false: there is none.
func (c *Cover) Renewed() (at time.Duration, ever bool) { return c.renewed, c.ever }
