package runner

import (
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
)

// frameBytes is what a watch adds to an object in protobuf: envelope, type, length.
const frameBytes = 64

// account is what had crossed when a fault began.
type account struct {
	pool, reference int64 // of class pool
	resync          int64
}

func (r *run) account() account {
	return account{pool: r.poolBytes(), reference: r.bytesOf(r.way(report.WayReference))}
}

// poolBytes are the bytes of class pool with Weir so far.
func (r *run) poolBytes() int64 { return r.bytesOf(r.weir()) }

func (r *run) bytesOf(w *way) int64 {
	var n int64
	for _, l := range r.linksOf(w) {
		n += link.Sum(l.Counters(), func(c link.Counter) bool { return c.Class == runtime.ClassPool })
	}
	return n
}

// settleAccount counts what an episode cost, in all pools: one that is disturbed by a fault of another shows.
//
// The changes of the time cost what they cost the reference, as long as the copy comes in the stream that it began
// with, which the cloud compresses to its end. They cost what they are in protobuf once a stream was resumed, which the
// cloud does not compress.
func (r *run) settleAccount(e *episode, before account) {
	now := r.account()
	e.changes = r.truth().bytes(e.began, e.ended)
	price := e.changes * r.copies()
	if reference := now.reference - before.reference; reference > 0 && !r.resumedBy(e.ended) {
		price = reference
	}
	e.bytes = max(now.pool-before.pool-price-e.deed.Due, 0)
	e.caughtUp = now.pool - before.pool
	if before.resync > 0 {
		e.resync = now.pool - before.resync
	}
	e.grace = graceOf(e, r.connections(e.deed.harms()...))
	for _, c := range r.connections() {
		if c.Opened.After(e.began) && c.Opened.Before(e.ended) {
			e.opened++
			e.openedBy = append(e.openedBy, c.Class+" of "+c.Node)
		}
	}
}

// copies are how many pools with Weir read the changes.
func (r *run) copies() int64 { return int64(len(r.weir().pools)) }

// connections are those of some pools to the cloud, with Weir; of all if none is named.
func (r *run) connections(pools ...string) (all []link.Connection) {
	if len(pools) == 0 {
		pools = r.weir().pools
	}
	for _, p := range pools {
		all = append(all, r.site.Link(p).Connections()...)
	}
	return all
}

// linksOf are the uplinks of a way that there is.
func (r *run) linksOf(w *way) (all []*link.Pool) {
	for _, p := range w.pools {
		if l := r.site.Link(p); l != nil {
			all = append(all, l)
		}
	}
	return all
}

// graceOf is the time from an episode's beginning until the first connection of class pool that was opened in it; 0:
// none was.
func graceOf(e *episode, connections []link.Connection) (first time.Duration) {
	for _, c := range connections {
		after := c.Opened.Sub(e.began)
		if c.Class == runtime.ClassPool && after > 0 && c.Opened.Before(e.ended) && (first == 0 || after < first) {
			first = after
		}
	}
	return first
}

// resumedBy reports whether a connection of class pool was opened since all were synced.
func (r *run) resumedBy(at time.Time) bool {
	return slices.ContainsFunc(r.connections(), func(c link.Connection) bool {
		return c.Class == runtime.ClassPool && c.Opened.After(r.synced) && c.Opened.Before(at)
	})
}
