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

// ErrHistory refuses a list of an earlier history than that of the relay: it comes from a source that has not learned
// yet.
var ErrHistory = errors.New("the list is of an earlier history of the cloud")

var errNoVersion = errors.New("replace: list has no version")

// Replace takes a complete list at a version. The first one fills the relay. Over an older state it becomes one batch
// of events (rule 6). It returns ErrOlder for a list older than the version reached. If the list contradicts the state
// in a way that no watch could explain, the history is thrown away: watches end, and resumes from before get 410.
func (r *Relay) Replace(version uint64, items []*wire.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replaceIn(r.history, version, items, word{asOf: r.cfg.Clock.Now()})
}

// ReplaceIn takes a complete list of a history. In that of the relay it is Replace. One of a later history may be at an
// earlier version: what the relay holds is thrown away, all watches end with one 410, and so do resumes from before.
// ErrHistory refuses one of an earlier history.
func (r *Relay) ReplaceIn(h History, version uint64, items []*wire.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replaceIn(h, version, items, word{asOf: r.cfg.Clock.Now()})
}

func (r *Relay) replaceIn(h History, version uint64, items []*wire.Object, w word) error {
	switch {
	case version == 0:
		return errNoVersion
	case h.Number < r.history.Number:
		return fmt.Errorf("replace: %w: %d, the relay is in %d", ErrHistory, h.Number, r.history.Number)
	case h.Number == r.history.Number:
		r.history.Lost = max(r.history.Lost, h.Lost)
		return r.replace(version, items, w)
	}
	return r.begin(h, version, items, w)
}

// Renumber goes on in another history with all that the relay holds. It is for the one that hears from the cloud itself
// and cannot agree with the others of a pool on a number, because theirs was not counted but made up: what clients of
// this relay know stays true, so that they need not list. Relays that read this one begin again.
func (r *Relay) Renumber(h History) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.Logger.Error("the relay goes on in another history, with what it holds from the cloud", "history", h.Number,
		"was", r.history.Number)
	r.history = History{h.Number, max(h.Lost, r.history.Lost)}
	r.said++
	r.broadcast()
	r.show(r.cfg.Clock.Now())
}

// begin goes on with a list of another history; r.mu is held.
func (r *Relay) begin(h History, version uint64, items []*wire.Object, w word) error {
	if version == 0 {
		return errNoVersion
	}
	for _, o := range items {
		r.inspect(o)
	}
	if r.synced {
		r.counts.flushed++
		r.counts.histories++
		r.cfg.Logger.Error("the history of the cloud is another one, as after a restore from a backup: what was held is "+
			"thrown away, and every client lists once",
			"history", h.Number, "was", r.history.Number, "version", version, "reached", r.state.Version())
	}
	r.counts.replaced++
	r.history = History{h.Number, max(h.Lost, r.history.Lost, r.state.Version())}
	r.progress = time.Time{} // what was proven of another history says nothing of this one
	r.sign(w, r.cfg.Clock.Now())
	r.load(version, items)
	r.broadcast()
	return nil
}

// replace takes a list of the relay's history; r.mu is held.
func (r *Relay) replace(version uint64, items []*wire.Object, w word) error {
	reached := r.state.Version()
	if version < reached {
		return fmt.Errorf("replace: %w: %d, reached is %d", ErrOlder, version, reached)
	}
	now := r.cfg.Clock.Now()
	r.counts.replaced++
	r.sign(w, now)
	defer r.broadcast()
	for _, o := range items {
		r.inspect(o)
	}
	if !r.synced {
		r.load(version, items)
		return nil
	}
	if version == reached {
		return nil
	}
	explained, err := r.state.Replace(version, items, w.trail, now)
	if err != nil {
		return fmt.Errorf("replace: %w", err)
	}
	if !explained {
		r.cfg.Logger.Warn("the list contradicts the state it follows; history is thrown away", "reached", reached,
			"list", version)
		r.counts.flushed++
		r.load(version, items)
		return nil
	}
	r.show(now) // before the ring may pass what is held back
	r.trim(now)
	return nil
}

// load starts a new history with a list.
func (r *Relay) load(version uint64, items []*wire.Object) {
	r.state.Load(version, items)
	r.synced = true
	r.show(r.cfg.Clock.Now())
}

// refill takes a complete list at a version from somebody who held it, and not from a source: it moves the relay
// forward, and proves nothing but that this was all there was at a time. It returns ErrOlder if the relay has as much
// already.
func (r *Relay) refill(h History, version uint64, items []*wire.Object, w word) error {
	if mine := r.history.Number; r.synced && h.Number == mine && version <= r.state.Version() {
		return fmt.Errorf("refill: %w: %d, reached is %d", ErrOlder, version, r.state.Version())
	}
	return r.replaceIn(h, version, items, word{asOf: w.asOf, restored: true})
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
		if in.Version < r.state.Version() {
			return nil
		}
		if in.Version == r.state.Version() { // nothing is new, but the source lives
			r.said++
		}
		r.state.Bookmark(in.Version, now)
		r.broadcast()
		r.changed(now, 0)
		return nil
	}
	if in.Version <= r.state.Version() {
		r.counts.dropped++
		return nil
	}
	if err := r.state.Apply(in, now); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if in.Type != wire.Deleted {
		r.inspect(in.Object)
	}
	r.counts.applied++
	r.sign(w, now)
	r.changed(now, int64(len(in.Object.Raw)))
	r.trim(now)
	r.broadcast()
	return nil
}

// inspect notes a field that the compiled type does not know; r.mu is held.
func (r *Relay) inspect(o *wire.Object) {
	if r.newer.look(o) {
		r.cfg.Logger.Warn(
			"the cloud is newer than the types compiled in: reads in another encoding than protobuf go to the cloud",
			"object", o.Key, "field", r.newer.field)
	}
}
