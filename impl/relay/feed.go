package relay

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// ErrOlder refuses a list that is older than what the relay has reached: it comes from a server that lags, and a relay
// never goes back.
var ErrOlder = errors.New("list is older than the version reached")

// ErrNotSynced refuses events before the first list.
var ErrNotSynced = errors.New("relay has no list yet")

// Replace takes a complete list at a version. The first one fills the relay. Over an older state it becomes one batch of
// events (rule 6). It returns ErrOlder for a list older than the version reached. If the list contradicts the state in a way
// that no watch could explain, the history is thrown away: watches end, and resumes from before get 410.
func (r *Relay) Replace(version uint64, items []*wire.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replaceIn(r.history, version, items, word{asOf: r.cfg.Clock.Now()})
}

// replace takes a list of the relay's history; r.mu is held.
func (r *Relay) replace(version uint64, items []*wire.Object, w word) error {
	if version < r.version {
		return fmt.Errorf("replace: %w: %d, reached is %d", ErrOlder, version, r.version)
	}
	now := r.cfg.Clock.Now()
	r.counts.replaced++
	r.sign(w, now)
	defer r.broadcast()
	for _, o := range items {
		r.checkSchema(o)
	}
	if !r.synced {
		r.load(version, items)
		return nil
	}
	if version == r.version {
		return nil
	}
	gone, changed, ok := r.diff(version, items)
	if !ok {
		r.cfg.Logger.Warn("the list contradicts the state it follows; history is thrown away", "reached", r.version, "list", version)
		r.counts.flushed++
		r.load(version, items)
		return nil
	}
	b := &batch{from: r.version, to: version}
	return r.follow(b, w.trail.along(b, gone, changed, r.tree.Get), now)
}

// follow publishes a batch. It starts at the version reached; r.mu is held.
func (r *Relay) follow(b *batch, steps []step, now time.Time) error {
	for _, s := range steps {
		if !s.gone {
			r.put(s.o, &event{version: s.version, cur: s.o, batch: b, at: now})
			continue
		}
		old, have := r.tree.Delete(s.o)
		if !have {
			continue
		}
		r.bytes -= int64(len(old.Raw))
		last, err := old.WithVersion(r.enc, s.version)
		if err != nil {
			return fmt.Errorf("replace: %w", err)
		}
		r.ring.push(&event{version: s.version, cur: last, prev: old, deleted: true, batch: b, at: now})
	}
	r.ring.push(&event{version: b.to, batch: b, at: now})
	r.version = b.to
	r.show(now) // before the ring may pass what is held back
	r.ring.trim(r.cfg.RingBytes, now.Add(-r.cfg.RingAge))
	return nil
}

// load starts a new history with a list.
func (r *Relay) load(version uint64, items []*wire.Object) {
	r.tree, r.bytes = newTree(), 0
	for _, o := range items {
		if old, replaced := r.tree.ReplaceOrInsert(o); replaced {
			r.bytes -= int64(len(old.Raw))
		}
		r.bytes += int64(len(o.Raw))
	}
	r.epoch++
	r.synced, r.version = true, version
	r.ring.reset(version)
	r.show(r.cfg.Clock.Now())
}

// diff compares the state with a newer list: what is gone, and what is new or changed.
// ok is false if no watch could lead from the state to the list.
func (r *Relay) diff(version uint64, items []*wire.Object) (gone, changed []*wire.Object, ok bool) {
	listed := make(map[string]*wire.Object, len(items))
	for _, o := range items {
		listed[o.Key] = o
		old, have := r.tree.Get(o)
		switch {
		case o.Version > version:
			return nil, nil, false
		case have && old.UID == o.UID && old.Version == o.Version:
			continue
		case o.Version <= r.version: // changed, but not since the state we hold
			return nil, nil, false
		}
		changed = append(changed, o)
	}
	r.tree.Ascend(func(old *wire.Object) bool {
		if o := listed[old.Key]; o == nil || o.UID != old.UID {
			gone = append(gone, old)
		}
		return true
	})
	return gone, changed, true
}

// put stores an object and publishes it as e, whose prev it fills in.
func (r *Relay) put(o *wire.Object, e *event) {
	if old, replaced := r.tree.ReplaceOrInsert(o); replaced {
		e.prev = old
		r.bytes -= int64(len(old.Raw))
	}
	r.bytes += int64(len(o.Raw))
	r.ring.push(e)
}

// Apply takes the next event of the upstream watch. Events at or below the version reached are dropped: that makes it
// safe to resume at any source, and harmless to be fed twice. An ERROR event is the feeder's business, not a relay's.
func (r *Relay) Apply(in *wire.Event) error { return r.apply(in, nil) }

// apply takes an event by the word of an upstream; nil: of the cloud.
func (r *Relay) apply(in *wire.Event, by *Testimony) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.synced {
		return fmt.Errorf("apply: %w", ErrNotSynced)
	}
	now := r.cfg.Clock.Now()
	w := by.about(in.Version, now)
	if in.Type == wire.Bookmark {
		r.vouch(w, now)
		if in.Version < r.version {
			return nil
		}
		if in.Version == r.version { // nothing is new, but the source lives
			r.said++
		}
		r.version = in.Version
		r.ring.bookmark(in.Version, now)
		r.broadcast()
		r.changed(now, 0)
		return nil
	}
	if in.Version <= r.version {
		r.counts.dropped++
		return nil
	}
	e := &event{version: in.Version, cur: in.Object, at: now}
	switch in.Type {
	case wire.Added, wire.Modified:
		r.checkSchema(in.Object)
		r.put(in.Object, e)
	case wire.Deleted:
		old, have := r.tree.Delete(in.Object)
		if have {
			r.bytes -= int64(len(old.Raw))
			e.prev, e.deleted = old, true
			r.ring.push(e)
		} else {
			r.ring.bookmark(in.Version, now)
		}
	default:
		return fmt.Errorf("apply: event type %q cannot be applied", in.Type)
	}
	if e.typ() == in.Type && len(in.Frame) > 0 {
		e.frame.Store(&in.Frame)
	}
	r.counts.applied++
	r.sign(w, now)
	r.version = in.Version
	r.changed(now, int64(len(in.Object.Raw)))
	r.ring.trim(r.cfg.RingBytes, now.Add(-r.cfg.RingAge))
	r.broadcast()
	return nil
}

// checkSchema notes a field that the compiled type does not know: from then on transcoding would lose it.
func (r *Relay) checkSchema(o *wire.Object) {
	if r.schema == nil || r.newer != "" {
		return
	}
	if path := r.schema.Unknown(o.Raw); path != "" {
		r.newer = path
		r.cfg.Logger.Warn("the cloud is newer than the types compiled in: reads in another encoding than protobuf go to the cloud",
			"object", o.Key, "field", path)
	}
}
