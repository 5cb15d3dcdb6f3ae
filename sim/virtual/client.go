package virtual

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/invariant"
)

const clientRetry = time.Second

// Client is what every consumer of the Kubernetes API is: it lists once, watches, resumes at the version it has seen,
// and lists again only after 410. Package invariant judges what it is shown. Its connection may be cut behind any
// event, and it may go on at another hub or at the cloud.
type Client struct {
	loop    *Loop
	pool    *Pool
	name    string
	hub     *Hub // nil: the cloud
	close   func()
	run     int
	synced  bool
	version uint64
	era     int // of what it holds
	judged  *invariant.Stream
	listing bool  // a streaming list is under way
	seen    place // where the last version was seen
	fuse    int   // events until the connection is cut; 0: it is not
	back    *Hub  // where it goes on when all is healed; nil: where it is
}

// place is one life of a server. After 410 a client that has changed it may list a state that is older than what it has
// seen: a hub that began from its disk, or one that is behind, or one that was new and learned only now in which
// history the pool is. Weir tells the age of what it shows.
type place struct {
	hub     *Hub
	life    int
	history uint64 // that its relay is in
}

func (c *Client) where() place {
	if c.hub == nil {
		return place{history: uint64(c.pool.cloud.era)}
	}
	return place{c.hub, c.hub.life, c.hub.server.Status().History.Number}
}

// server goes on at a hub, or at the cloud.
func (c *Client) server(h *Hub) {
	c.cut()
	c.hub = h
	c.retry(0)
}

// cut ends the connection.
func (c *Client) cut() {
	c.run++
	if c.close != nil {
		c.close()
		c.close = nil
	}
}

func (c *Client) retry(d time.Duration) {
	c.run++
	run := c.run
	c.loop.After(d, func() {
		if c.run == run {
			c.open()
		}
	})
}

// open lists and watches, or resumes.
func (c *Client) open() {
	c.run++
	run := c.run
	c.follow()
	if c.lost() {
		c.synced = false
	}
	c.listing = !c.synced
	c.judge(client.Op{What: client.OpOpen, Initial: c.listing, Version: c.version})
	take := func(ev *wire.Event) {
		if c.run == run {
			c.take(ev)
		}
	}
	end := func(err error) {
		if c.run == run {
			c.ended(err)
		}
	}
	if c.hub == nil {
		if !c.pool.cloud.up {
			c.retry(clientRetry)
			return
		}
		var w *cloudWatch
		if c.synced {
			w = c.pool.cloud.watch(c.version, time.Minute, take, end)
		} else {
			w = c.pool.cloud.stream(time.Minute, take, end)
		}
		c.keep(run, w.close)
		return
	}
	if !c.hub.up {
		c.retry(clientRetry)
		return
	}
	h := c.hub
	h.in(func() {
		if c.run != run {
			return
		}
		o := relay.WatchOptions{Initial: true, Timeout: 5 * time.Minute}
		if c.synced {
			o.Initial, o.Version = false, c.version
		}
		t := h.read().watch(&h.process, o, take, end)
		c.keep(run, t.close)
	})()
}

// follow goes over to the era of the server that it resumes at, if what it holds is of before that one began: the same
// in both.
func (c *Client) follow() {
	era := c.pool.cloud.era
	if c.hub != nil {
		era = c.hub.server.era
	}
	for c.era < era && c.version <= c.pool.cloud.eras[c.era+1].began {
		c.era++
		c.judged.In(c.pool.cloud.eras[c.era].view)
	}
}

// lost reports whether the client has to list because of what Weir does not promise: that a stock client is warned by a
// cloud that was restored, or by a hub that began from a disk of before, or comes back from before with a version that
// means something in the present history, too, or that is later than all that its hub knows to be lost.
func (c *Client) lost() bool {
	if c.hub == nil {
		return c.era != c.pool.cloud.era
	}
	era := c.hub.server.era
	return c.era > era || c.era < era && (c.version%eraStride == uint64(era)%eraStride || c.version > c.hub.server.lost)
}

// keep notes how to end a watch that was opened, or ends it if that was done meanwhile.
func (c *Client) keep(run int, close func()) {
	if c.run == run {
		c.close = close
	} else {
		close()
	}
}

func (c *Client) ended(err error) {
	c.close = nil
	switch {
	case isGone(err):
		c.pool.trace(c.name, "410 at %d: lists", c.version)
		c.synced = false
		c.retry(0)
	case err != nil:
		c.retry(clientRetry)
	default:
		c.retry(10 * time.Millisecond)
	}
}

// take takes an event, as a reflector does.
func (c *Client) take(ev *wire.Event) {
	op := client.Op{What: client.OpEvent, Type: watch.EventType(ev.Type), Version: ev.Version}
	switch {
	case ev.InitialEnd && c.listing:
		op.What = client.OpInitialEnd
		c.era = c.pool.cloud.era
		if c.hub != nil {
			c.era = c.hub.server.era
		}
		c.judged.In(c.pool.cloud.eras[c.era].view)
		c.judged.Moves(c.where() != c.seen)
	case ev.Type == wire.Bookmark:
		op.What = client.OpBookmark
	default:
		if op.Item = itemOf(ev.Object); !c.listing {
			c.pool.detail(c.name, "%s %s@%d", ev.Type, op.Item.Key, ev.Version)
		}
	}
	c.judge(op)
	if c.listing = c.listing && !ev.InitialEnd; !c.listing {
		c.synced, c.version, c.seen = true, ev.Version, c.where()
	}
	if c.fuse > 0 {
		if c.fuse--; c.fuse == 0 {
			c.pool.trace(c.name, "cut at %d", c.version)
			c.left()
			c.cut()
			c.retry(c.loop.upTo(clientRetry))
		}
	}
}

// left tells the judge whether the client leaves what follows an answer of 410 in the middle.
func (c *Client) left() {
	if h := c.hub; h != nil && c.era == h.server.era && !h.server.Resumable(c.version) {
		c.judged.Leaves(h.server.Status().Version)
	}
}

func (c *Client) judge(op client.Op) {
	for _, x := range c.judged.Step(op) {
		c.pool.judge.fail(c.name, "%s: %s; it has %v", x.Rule, x.Detail, maps.Clone(c.judged.State()))
	}
}
