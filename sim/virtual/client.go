package virtual

import (
	"fmt"
	"maps"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const clientRetry = time.Second

// Client is what every consumer of the Kubernetes API is: it lists once, watches, resumes at the version it has seen,
// and lists again only after 410. It checks each event against the truth. Its connection may be cut behind any event,
// and it may go on at another hub or at the cloud.
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
	state   map[string]identity
	listing map[string]identity // not nil: a streaming list is under way
	// by key, what a batch removed before its time, or had yet to show when it was left in the middle: its next change
	// mends that.
	lacks   map[string]lack
	resumed uint64 // version of the last resume
	seen    place  // where the last version was seen
	fuse    int    // events until the connection is cut; 0: it is not
}

// lack is an object that a client has not, though it was there at the version that the client had.
type lack struct {
	uid string
	at  uint64
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
	c.listing, c.resumed = nil, c.version
	c.follow()
	if c.lost() {
		c.synced = false
	}
	if !c.synced {
		c.listing = map[string]identity{}
	}
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
		t := h.server.watch(&h.process, o, take, end)
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
	switch {
	case c.listing != nil:
		c.list(ev)
	case ev.Type == wire.Bookmark:
		c.bookmark(ev)
	default:
		c.change(ev)
		c.version, c.seen = ev.Version, c.where()
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

// left notes what a batch that is left in the middle had yet to show: what came to be before the version reached, and
// was changed by that of the relay.
func (c *Client) left() {
	if c.hub == nil || c.era != c.hub.server.era || c.hub.server.Resumable(c.version) {
		return
	}
	for _, o := range c.truth().list(c.version) {
		now, _ := c.truth().at(o.Key, c.hub.server.Status().Version)
		if _, has := c.state[o.Key]; !has && now.version > c.version {
			c.lacks[o.Key] = lack{o.UID, c.version}
		}
	}
}

func (c *Client) list(ev *wire.Event) {
	if !ev.InitialEnd {
		if _, twice := c.listing[ev.Object.Key]; twice || ev.Type != wire.Added {
			c.fail("unique: %s %s@%d among the initial events", ev.Type, ev.Object.Key, ev.Version)
		}
		c.listing[ev.Object.Key] = identity{ev.Object.UID, ev.Version}
		return
	}
	era := c.pool.cloud.era
	if c.hub != nil {
		era = c.hub.server.era
	}
	if ev.Version < c.version && c.where() == c.seen {
		c.fail("never backward: a list at %d after %d", ev.Version, c.version)
	}
	c.era = era
	if len(c.listing) == 0 && len(c.state) > 0 && len(c.truth().list(ev.Version)) > 0 {
		c.fail("never empty: an empty list at %d", ev.Version)
	}
	c.state, c.lacks, c.listing, c.synced = c.listing, map[string]lack{}, nil, true
	c.version, c.seen = ev.Version, c.where()
	c.complete("list")
}

// truth is the history that it knows.
func (c *Client) truth() *history { return c.pool.cloud.eras[c.era] }

func (c *Client) bookmark(ev *wire.Event) {
	if ev.Version < c.version {
		c.fail("never backward: a bookmark at %d after %d", ev.Version, c.version)
	}
	c.version, c.seen = ev.Version, c.where()
	c.complete("bookmark")
}

// complete holds the state against the truth. What it lacks may be missing until it changes.
func (c *Client) complete(what string) {
	state := maps.Clone(c.state)
	for key, l := range c.lacks {
		now, _ := c.truth().at(key, c.version)
		if _, has := state[key]; !has && now.uid == l.uid && now.version <= l.at && c.changes(key, l.uid) {
			state[key] = now
		}
	}
	if d := c.truth().differs(state, c.version); d != "" {
		c.fail("complete: %s at %d: %s", what, c.version, d)
	}
}

func (c *Client) change(ev *wire.Event) {
	o := ev.Object
	has, exists := c.state[o.Key]
	c.pool.detail(c.name, "%s %s@%d", ev.Type, o.Key, ev.Version)
	truth := c.truth().event(ev.Version)
	if ev.Type == wire.Deleted {
		// A deletion of a batch has the version that the batch starts from, and comes again when it is resumed there.
		batch := truth == nil || truth.Type != wire.Deleted || truth.Object.Key != o.Key
		switch {
		case ev.Version < c.version || ev.Version == c.version && !batch:
			c.fail("ordered: %s %s@%d after %d", ev.Type, o.Key, ev.Version, c.version)
		case batch && !c.removedAfter(o, ev.Version):
			c.fail("complete: %s was never deleted after %d", o.Key, ev.Version)
		case !exists && c.lacks[o.Key].uid == o.UID:
			delete(c.lacks, o.Key)
		case !exists && (!batch || ev.Version != c.resumed):
			c.fail("unique: %s is deleted, but was not there", o.Key)
		case exists && has.uid != o.UID:
			c.fail("complete: %s with %s is deleted, but %s is there", o.Key, o.UID, has.uid)
		}
		delete(c.state, o.Key)
		if batch {
			c.lacks[o.Key] = lack{o.UID, ev.Version}
		}
		return
	}
	switch {
	case ev.Version <= c.version:
		c.fail("ordered: %s %s@%d after %d", ev.Type, o.Key, ev.Version, c.version)
	case truth == nil || truth.Type == wire.Deleted || truth.Object.Key != o.Key || truth.Object.UID != o.UID:
		c.fail("complete: %s %s@%d (%s) never was", ev.Type, o.Key, ev.Version, o.UID)
	case exists && has.uid != o.UID:
		c.fail("complete: %s with %s is modified, but %s is there", o.Key, o.UID, has.uid)
	case !exists && c.lacks[o.Key].uid == o.UID:
		delete(c.lacks, o.Key)
	case exists != (ev.Type == wire.Modified):
		c.fail("filtered: %s %s@%d, and it was there: %t", ev.Type, o.Key, ev.Version, exists)
	}
	c.state[o.Key] = identity{o.UID, ev.Version}
}

// removedAfter reports whether an object was deleted later than a version.
func (c *Client) removedAfter(o *wire.Object, version uint64) bool {
	for _, ev := range c.truth().since(version) {
		if ev.Type == wire.Deleted && ev.Object.Key == o.Key && ev.Object.UID == o.UID {
			return true
		}
	}
	return false
}

// changes reports whether what an object was at the version of the client is changed or deleted later.
func (c *Client) changes(key, uid string) bool {
	for _, ev := range c.truth().since(c.version) {
		if ev.Object.Key == key {
			return ev.Object.UID == uid
		}
	}
	return false
}

func (c *Client) fail(format string, args ...any) {
	c.pool.judge.fail(c.name, "%s; state %v", fmt.Sprintf(format, args...), maps.Clone(c.state))
}
