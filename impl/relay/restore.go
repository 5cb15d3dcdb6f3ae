package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/btree"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// ErrSynced refuses a restoration that comes when the relay has been fed: what a source says is newer than any disk.
var ErrSynced = errors.New("the relay has been fed already")

// WaitSign waits until the relay has been fed, by a list, or after a restoration any sign of its source, or has been denied.
func (r *Relay) WaitSign(ctx context.Context) error {
	return r.until(ctx, func() bool { return r.synced && !r.restored || r.denied != nil })
}

// Restoration rebuilds the content of an Export: Add each object, Apply each change, then Finish. Until then the relay knows
// nothing of it, and a restoration that is given up leaves no trace. It is not safe for concurrent use.
type Restoration struct {
	r       *Relay
	now     time.Time
	history History
	version uint64
	tree    *btree.BTreeG[*wire.Object]
	bytes   int64
	ring    ring
	newer   string

	batch   *batch   // being read
	pending []Change // of batch: they count once it is complete
}

// Restoration begins to rebuild a state at a version.
func (r *Relay) Restoration(version uint64) *Restoration {
	x := &Restoration{r: r, now: r.cfg.Clock.Now(), version: version, tree: newTree()}
	x.ring.reset(version)
	return x
}

// In says which history the versions are of, if that is not the first.
func (x *Restoration) In(h History) { x.history = h }

// Add takes one object of the state.
func (x *Restoration) Add(o *wire.Object) error {
	if _, twice := x.tree.ReplaceOrInsert(o); twice {
		return fmt.Errorf("restore: %s twice", o.Key)
	}
	x.take(o)
	return nil
}

// take counts an object and looks at its fields.
func (x *Restoration) take(o *wire.Object) {
	x.bytes += int64(len(o.Raw))
	if x.newer == "" && x.r.schema != nil {
		x.newer = x.r.schema.Unknown(o.Raw)
	}
}

// Apply takes the next change. Those of a batch count once it is complete.
func (x *Restoration) Apply(c Change) error {
	if err := x.check(c); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if c.To == 0 {
		return x.apply(c, nil)
	}
	if x.batch == nil {
		x.batch = &batch{from: c.From, to: c.To}
	}
	x.pending = append(x.pending, c)
	if c.Kind == Reached {
		for _, p := range x.pending {
			if err := x.apply(p, x.batch); err != nil {
				return err
			}
		}
		x.batch, x.pending = nil, nil
	}
	return nil
}

// check tells whether a change can follow: a relay's history never goes back.
func (x *Restoration) check(c Change) error {
	switch {
	case c.Kind < Put || c.Kind > Reached || (c.Kind == Reached) != (c.Object == nil):
		return fmt.Errorf("a change of kind %d is not one", c.Kind)
	case x.batch != nil && (c.From != x.batch.from || c.To != x.batch.to):
		return fmt.Errorf("a change to %d inside the batch from %d to %d", c.Version, x.batch.from, x.batch.to)
	case c.To != 0:
		return x.checkBatch(c)
	case c.Version < x.version || c.Version == x.version && c.Kind != Reached:
		return fmt.Errorf("a change to %d behind version %d", c.Version, x.version)
	}
	return nil
}

func (x *Restoration) checkBatch(c Change) error {
	last := c.From
	if n := len(x.pending); n > 0 {
		last = x.pending[n-1].Version
	}
	switch {
	case c.From < x.version || c.To <= c.From:
		return fmt.Errorf("a batch from %d to %d at version %d", c.From, c.To, x.version)
	case c.Version < last || c.Version > c.To || c.Kind == Put && c.Version == c.From || c.Kind == Reached && c.Version != c.To:
		return fmt.Errorf("a change to %d behind one to %d in the batch from %d to %d", c.Version, last, c.From, c.To)
	}
	return nil
}

func (x *Restoration) apply(c Change, b *batch) error {
	e := &event{version: c.Version, cur: c.Object, batch: b, at: x.now}
	switch c.Kind {
	case Put:
		if old, replaced := x.tree.ReplaceOrInsert(c.Object); replaced {
			e.prev = old
			x.bytes -= int64(len(old.Raw))
		}
		x.take(c.Object)
	case Delete:
		old, have := x.tree.Delete(c.Object)
		if !have {
			return fmt.Errorf("restore: %s is deleted at %d and was not there", c.Object.Key, c.Version)
		}
		e.prev, e.deleted = old, true
		x.bytes -= int64(len(old.Raw))
	}
	x.version = max(x.version, c.Version)
	x.ring.push(e)
	x.ring.trim(x.r.cfg.RingBytes, time.Time{})
	return nil
}

// Version is what Finish would give the relay.
func (x *Restoration) Version() uint64 { return x.version }

// Finish gives the relay what was rebuilt, without a batch that is not complete. From then on it serves, as fresh as it was at
// asOf by the wall clock: there is no other clock across a restart. It counts as restored, and not as fresh however young it is, until its source shows a sign.
// Events age from now on: the time for which nobody could be served took nothing from a client's time to come back.
func (x *Restoration) Finish(asOf time.Time) error {
	x.pending = nil
	if err := x.history.check(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if !x.history.First() {
		return fmt.Errorf("restore: history %d cannot have been counted", x.history.Number)
	}
	r := x.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.synced {
		return fmt.Errorf("restore: %w", ErrSynced)
	}
	r.tree, r.bytes = x.tree, x.bytes
	r.ring, r.version, r.history = x.ring, x.version, x.history
	r.epoch++
	r.synced, r.restored = true, true
	r.said++
	r.progress = asOf.Round(0) // without the monotonic clock: when the wall clock is set, the age is right
	if r.newer == "" {
		r.newer = x.newer
	}
	r.broadcast()
	r.show(r.cfg.Clock.Now())
	return nil
}
