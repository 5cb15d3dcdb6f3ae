package mvcc

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Restoration rebuilds the content of an Export: Add each object, then Apply each change. It is not safe for concurrent
// use.
type Restoration struct {
	state     State
	at        time.Time
	ringBytes int64
	look      func(*wire.Object)

	batch   *Batch   // being read
	pending []*Event // of batch: they count once it is complete
}

// NewRestoration begins with no objects at a version. Events are bounded in bytes and age from a time. look is shown
// each object.
func NewRestoration(enc wire.Encoding, version uint64, ringBytes int64, at time.Time,
	look func(*wire.Object)) *Restoration {
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
func (x *Restoration) Apply(e *Event) error {
	if err := x.check(e); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if e.Batch == nil {
		return x.apply(e, nil)
	}
	if x.batch == nil {
		x.batch = &Batch{From: e.Batch.From, To: e.Batch.To}
	}
	x.pending = append(x.pending, e)
	if e.Cur != nil {
		return nil
	}
	for _, p := range x.pending {
		if err := x.apply(p, x.batch); err != nil {
			return err
		}
	}
	x.batch, x.pending = nil, nil
	return nil
}

// check reports whether a change can follow: versions never go back.
func (x *Restoration) check(e *Event) error {
	switch b := e.Batch; {
	case x.batch != nil && (b == nil || b.From != x.batch.From || b.To != x.batch.To):
		return fmt.Errorf("a change to %d inside the batch from %d to %d", e.Version, x.batch.From, x.batch.To)
	case b != nil:
		return x.checkBatch(e, b)
	case e.Version < x.state.version || e.Version == x.state.version && e.Cur != nil:
		return fmt.Errorf("a change to %d behind version %d", e.Version, x.state.version)
	}
	return nil
}

func (x *Restoration) checkBatch(e *Event, b *Batch) error {
	last := b.From
	if n := len(x.pending); n > 0 {
		last = x.pending[n-1].Version
	}
	put := e.Cur != nil && !e.Deleted
	switch {
	case b.From < x.state.version || b.To <= b.From:
		return fmt.Errorf("a batch from %d to %d at version %d", b.From, b.To, x.state.version)
	case e.Version < last || e.Version > b.To || put && e.Version == b.From || e.Cur == nil && e.Version != b.To:
		return fmt.Errorf("a change to %d behind one to %d in the batch from %d to %d", e.Version, last, b.From, b.To)
	}
	return nil
}

// apply takes a copy of an event, which may be another State's.
func (x *Restoration) apply(like *Event, b *Batch) error {
	e := &Event{Version: like.Version, Cur: like.Cur, Deleted: like.Deleted, Batch: b, at: x.at}
	switch {
	case e.Deleted:
		if e.Prev = x.state.remove(e.Cur); e.Prev == nil {
			return fmt.Errorf("restore: %s is deleted at %d and was not there", e.Cur.Key, e.Version)
		}
	case e.Cur != nil:
		x.look(e.Cur)
		e.Prev = x.state.set(e.Cur)
	}
	x.state.version = max(x.state.version, e.Version)
	x.state.push(e)
	x.state.Trim(x.ringBytes, time.Time{})
	return nil
}

// Version is what is reached.
func (x *Restoration) Version() uint64 { return x.state.version }

// State is what was rebuilt, without a batch that is not complete.
func (x *Restoration) State() State { return x.state }
