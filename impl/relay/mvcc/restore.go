package mvcc

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Restoration rebuilds the content of an Export: Add each object, then Apply each change. It is not safe for concurrent use.
type Restoration struct {
	state     State
	at        time.Time
	ringBytes int64
	look      func(*wire.Object)

	batch   *Batch   // being read
	pending []Change // of batch: they count once it is complete
}

// NewRestoration begins with no objects at a version. Events are bounded in bytes and age from a time. look is shown each object.
func NewRestoration(enc wire.Encoding, version uint64, ringBytes int64, at time.Time, look func(*wire.Object)) *Restoration {
	x := &Restoration{state: New(enc), at: at, ringBytes: ringBytes, look: look}
	x.state.Load(version, nil)
	return x
}

// Add takes one object of the state.
func (x *Restoration) Add(o *wire.Object) error {
	if x.state.set(o) != nil {
		return fmt.Errorf("restore: %s twice", o.Key)
	}
	x.look(o)
	return nil
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
		x.batch = &Batch{From: c.From, To: c.To}
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

// check tells whether a change can follow: versions never go back.
func (x *Restoration) check(c Change) error {
	switch {
	case c.Kind < Put || c.Kind > Reached || (c.Kind == Reached) != (c.Object == nil):
		return fmt.Errorf("a change of kind %d is not one", c.Kind)
	case x.batch != nil && (c.From != x.batch.From || c.To != x.batch.To):
		return fmt.Errorf("a change to %d inside the batch from %d to %d", c.Version, x.batch.From, x.batch.To)
	case c.To != 0:
		return x.checkBatch(c)
	case c.Version < x.state.version || c.Version == x.state.version && c.Kind != Reached:
		return fmt.Errorf("a change to %d behind version %d", c.Version, x.state.version)
	}
	return nil
}

func (x *Restoration) checkBatch(c Change) error {
	last := c.From
	if n := len(x.pending); n > 0 {
		last = x.pending[n-1].Version
	}
	switch {
	case c.From < x.state.version || c.To <= c.From:
		return fmt.Errorf("a batch from %d to %d at version %d", c.From, c.To, x.state.version)
	case c.Version < last || c.Version > c.To || c.Kind == Put && c.Version == c.From || c.Kind == Reached && c.Version != c.To:
		return fmt.Errorf("a change to %d behind one to %d in the batch from %d to %d", c.Version, last, c.From, c.To)
	}
	return nil
}

func (x *Restoration) apply(c Change, b *Batch) error {
	e := &Event{Version: c.Version, Cur: c.Object, Batch: b, at: x.at}
	switch c.Kind {
	case Put:
		x.look(c.Object)
		e.Prev = x.state.set(c.Object)
	case Delete:
		if e.Prev = x.state.remove(c.Object); e.Prev == nil {
			return fmt.Errorf("restore: %s is deleted at %d and was not there", c.Object.Key, c.Version)
		}
		e.Deleted = true
	}
	x.state.version = max(x.state.version, c.Version)
	x.state.push(e)
	x.state.Trim(x.ringBytes, time.Time{})
	return nil
}

// Version is what is reached.
func (x *Restoration) Version() uint64 { return x.state.version }

// State is what was rebuilt, without a batch that is not complete.
func (x *Restoration) State() State { return x.state }
