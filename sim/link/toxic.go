package link

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// toxicType is the name of our toxic in toxiproxy's registry.
const toxicType = "weir_shared_uplink"

// segment is what TCP sends in one packet over Ethernet.
const segment = 1460

// uplink is our toxic. One value stands for one direction of a Proxy; what belongs to a connection is in its
// half, which toxiproxy keeps as the state of the connection's stub.
type uplink struct {
	next *half // of the connection that is being started, see Proxy.startLinks
}

var (
	_ toxics.Toxic         = (*uplink)(nil)
	_ toxics.StatefulToxic = (*uplink)(nil)
)

// NewState is called by toxiproxy when a link starts.
func (u *uplink) NewState() any { return u.next }

// Pipe moves one direction of a connection until it has ended. When toxiproxy interrupts it to change the
// toxics behind it, it returns and goes on in the next call; nothing is lost in between.
func (u *uplink) Pipe(stub *toxics.ToxicStub) {
	h, ok := stub.State.(*half)
	if !ok || h == nil { // cannot happen: links are started by startLinks only
		new(toxics.NoopToxic).Pipe(stub)
		return
	}
	if h.pump(stub) {
		h.drain(stub)
	}
}

// pump runs the flow. It returns true when the connection is dead and what still comes is to be thrown away.
func (h *half) pump(stub *toxics.ToxicStub) (dead bool) {
	pool := h.conn.proxy.pool
	for {
		c, changed := pool.conditions(h.conn.proxy.node, h.dir)
		if h.meetsReset(c) {
			return true
		}
		p := h.flow.step(c)
		if p.sent > 0 {
			pool.ledger.count(c.now, h.conn.id, h.dir, p.sent)
		}
		var in <-chan *stream.StreamChunk
		if p.hungry {
			in = stub.Input
		}
		var out chan<- *stream.StreamChunk
		var chunk *stream.StreamChunk
		if p.due != nil {
			if p.due.end {
				stub.Close()
				return false
			}
			out, chunk = stub.Output, &stream.StreamChunk{Data: p.due.data, Timestamp: c.now}
		}
		var timer <-chan time.Time
		stop := func() bool { return true }
		if !p.wake.IsZero() {
			t := pool.clock.NewTimer(p.wake.Sub(c.now))
			timer, stop = t.C(), t.Stop
		}
		select {
		case chunk, more := <-in:
			if more {
				h.flow.push(chunk.Data)
			} else {
				h.flow.end()
			}
		case out <- chunk:
			h.flow.pop()
		case <-timer:
		case <-changed:
		case <-h.conn.dead:
			stop()
			return true
		case <-stub.Interrupt:
			stop()
			return false
		}
		stop()
	}
}

// meetsReset reports whether the receiver closed its socket while the link was cut. What the sender had under way is
// lost then: its first segment that crosses is answered by a reset.
func (h *half) meetsReset(c conditions) bool {
	switch {
	case !c.open && !h.cut:
		h.cut, h.left = true, abandoned(h.to)
	case c.open && h.cut:
		h.cut = false
		if !h.left && abandoned(h.to) {
			if n := min(segment, c.packet, len(h.flow.waiting)); n > 0 {
				h.conn.proxy.pool.ledger.count(c.now, h.conn.id, h.dir, n)
			}
			h.refuse()
			return true
		}
	}
	return false
}

// drain reads on until the sender's socket is closed, so that toxiproxy's goroutines before us end.
func (h *half) drain(stub *toxics.ToxicStub) {
	for {
		select {
		case _, more := <-stub.Input:
			if !more {
				stub.Close()
				return
			}
		case <-stub.Interrupt:
			return
		}
	}
}
