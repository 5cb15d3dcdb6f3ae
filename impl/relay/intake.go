package relay

import (
	"fmt"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Intake takes the events of one upstream watch into a relay. A batch that another relay sends (rule 6) is taken as a
// whole: half of it is no state that ever was. What a watch that broke had begun is forgotten with its Intake. It is
// not safe for concurrent use.
type Intake struct {
	r       *Relay
	by      *Testimony // nil: the upstream is the cloud
	refill  bool
	bounded bool          // the upstream is a relay
	room    *Room         // of the batch that is coming
	batch   *mvcc.Batch   // that is coming; nil: none is
	trail   *mvcc.Trail   // to the list
	events  []*wire.Event // of it
}

// NewIntake begins to take a watch.
func NewIntake(r *Relay) *Intake { return &Intake{r: r} }

// Bound says that the upstream is another relay, which may mean harm: what it sends is bounded by Config.MaxBytes.
func (i *Intake) Bound() *Intake {
	i.bounded = true
	return i
}

// NewRefill begins to take what somebody who is not a source holds. It moves the relay forward only, and proves nothing
// but that what comes was all there was at a time: whatever it testifies, the relay counts as restored.
func NewRefill(r *Relay) *Intake { return &Intake{r: r, refill: true} }

// Behind says that the upstream had passed the relay up to a version when it was asked: what comes until then is a
// backlog, and no sign that the relay has all there is.
func (i *Intake) Behind(version uint64) {
	i.r.mu.Lock()
	defer i.r.mu.Unlock()
	if i.r.state.Version() < version {
		i.by = &Testimony{Version: version - 1, AsOf: i.r.progress}
	}
}

// Along says what happened on the way to the list that comes.
func (i *Intake) Along(t *mvcc.Trail) { i.trail = t }

// End takes the list that the watch began with, at the bookmark that ends it, as Relay.ReplaceIn does. Of a refill,
// ErrOlder tells that the relay has as much.
func (i *Intake) End(h History, ev *wire.Event, items []*wire.Object) error {
	if i.refill {
		return i.end(h, ev, items, i.r.refill)
	}
	return i.end(h, ev, items, i.r.replaceIn)
}

// Yield takes it of whatever history, also of an earlier one than that of the relay.
func (i *Intake) Yield(h History, ev *wire.Event, items []*wire.Object) error {
	return i.end(h, ev, items, i.r.begin)
}

func (i *Intake) end(h History, ev *wire.Event, items []*wire.Object,
	take func(History, uint64, []*wire.Object, word) error) error {
	i.r.mu.Lock()
	defer i.r.mu.Unlock()
	if err := i.hear(ev); err != nil {
		return err
	}
	w := i.by.about(ev.Version, i.r.cfg.Clock.Now())
	w.trail = i.trail
	return take(h, ev.Version, items, w)
}

// hear takes the testimony of the upstream, if the bookmark has one; r.mu is held.
func (i *Intake) hear(ev *wire.Event) (err error) {
	if ev.Testimony == "" {
		return nil
	}
	if i.by, err = parseTestimony(ev.Testimony, i.r.cfg.Clock.Now()); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	i.by.Restored = i.by.Restored || i.refill
	return nil
}

// testimony takes a bookmark that brings one. If the relay holds what the upstream speaks of, it is as fresh.
func (i *Intake) testimony(ev *wire.Event) error {
	i.r.mu.Lock()
	defer i.r.mu.Unlock()
	if err := i.hear(ev); err != nil {
		return err
	}
	if now := i.r.cfg.Clock.Now(); i.r.synced && i.r.state.Version() >= i.by.Version {
		i.r.vouch(i.by.about(i.by.Version, now), now)
		i.r.broadcast() // somebody may wait for a sign
	}
	return nil
}

// Apply takes the next event, as Relay.Apply does.
func (i *Intake) Apply(ev *wire.Event) error {
	if i.refill && i.by == nil {
		i.by = &Testimony{Restored: true}
	}
	switch {
	case ev.Testimony != "":
		return i.testimony(ev)
	case ev.BatchTo != 0:
		if i.batch != nil || ev.BatchTo <= ev.Version {
			return fmt.Errorf("apply: a batch from %d to %d begins, and another one has not ended: %t", ev.Version, ev.BatchTo,
				i.batch != nil)
		}
		i.batch, i.room = &mvcc.Batch{From: ev.Version, To: ev.BatchTo, Admitted: ev.BatchAdmits}, i.r.Room()
		return nil
	case i.batch == nil:
		return i.single(ev)
	case ev.Type != wire.Bookmark:
		return i.part(ev)
	case ev.Version != i.batch.To:
		return fmt.Errorf("apply: a bookmark at %d inside the batch from %d to %d", ev.Version, i.batch.From, i.batch.To)
	}
	b, events := i.batch, i.events
	i.batch, i.events = nil, nil
	return i.r.applyBatch(b, events, i.by)
}

// part takes an event of a batch.
func (i *Intake) part(ev *wire.Event) error {
	if b := i.batch; ev.Version < b.From || ev.Version > b.To {
		return fmt.Errorf("apply: an event at %d in the batch from %d to %d", ev.Version, b.From, b.To)
	}
	i.events = append(i.events, ev)
	if err := i.room.Take(ev.Object); err != nil {
		return fmt.Errorf("apply: a batch: %w", err)
	}
	return nil
}

// single takes an event that is of no batch.
func (i *Intake) single(ev *wire.Event) error {
	if i.bounded && ev.Object != nil && ev.Type != wire.Deleted {
		i.r.mu.RLock()
		err := i.r.fits(ev.Object)
		i.r.mu.RUnlock()
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
	}
	return i.r.apply(ev, i.by)
}

// applyBatch takes a whole batch.
func (r *Relay) applyBatch(b *mvcc.Batch, events []*wire.Event, by *Testimony) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.synced:
		return fmt.Errorf("apply: %w", ErrNotSynced)
	case r.state.Version() >= b.To:
		r.counts.dropped += uint64(len(events))
		return nil
	case r.state.Version() > b.From:
		return fmt.Errorf("apply: a batch from %d to %d, but %d is reached", b.From, b.To, r.state.Version())
	}
	var changed []*wire.Object
	for _, ev := range events {
		if ev.Type != wire.Deleted {
			r.inspect(ev.Object)
			changed = append(changed, ev.Object)
		}
	}
	if err := r.fits(changed...); err != nil { // batches come from relays only
		return fmt.Errorf("apply: a batch: %w", err)
	}
	now := r.cfg.Clock.Now()
	r.counts.applied += uint64(len(events))
	r.sign(by.about(b.To, now), now)
	defer r.broadcast()
	if err := r.state.Follow(b, events, now); err != nil {
		return fmt.Errorf("apply: a batch: %w", err)
	}
	r.show(now) // before the ring may pass what is held back
	r.trim(now)
	return nil
}

// Unclear names the objects of which more has to be told before a trail explains a list at a version, and the last
// version of each, 0 if it is deleted. ok is false if nothing will.
func (r *Relay) Unclear(t *mvcc.Trail, version uint64, items []*wire.Object) (unclear map[string]uint64, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return nil, false
	}
	return r.state.Unclear(t, version, items)
}
