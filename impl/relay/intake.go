package relay

import (
	"fmt"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Intake takes the events of one upstream watch into a relay. A batch that another relay sends (rule 6) is taken as a whole: half of
// it is no state that ever was. What a watch that broke had begun is forgotten with its Intake. It is not safe for concurrent use.
type Intake struct {
	r        *Relay
	from, to uint64        // of the batch that is coming; to is 0: none is
	events   []*wire.Event // of it
}

// NewIntake begins to take a watch.
func NewIntake(r *Relay) *Intake { return &Intake{r: r} }

// Apply takes the next event, as Relay.Apply does.
func (i *Intake) Apply(ev *wire.Event) error {
	switch {
	case ev.BatchTo != 0:
		if i.to != 0 || ev.BatchTo <= ev.Version {
			return fmt.Errorf("apply: a batch from %d to %d begins inside one to %d", ev.Version, ev.BatchTo, i.to)
		}
		i.from, i.to = ev.Version, ev.BatchTo
		return nil
	case i.to == 0:
		return i.r.Apply(ev)
	case ev.Type != wire.Bookmark:
		i.events = append(i.events, ev)
		return nil
	case ev.Version != i.to:
		return fmt.Errorf("apply: a bookmark at %d inside the batch from %d to %d", ev.Version, i.from, i.to)
	}
	b, events := &batch{from: i.from, to: i.to}, i.events
	i.to, i.events = 0, nil
	return i.r.applyBatch(b, events)
}

// applyBatch takes a whole batch.
func (r *Relay) applyBatch(b *batch, events []*wire.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.synced:
		return fmt.Errorf("apply: %w", ErrNotSynced)
	case r.version >= b.to:
		r.counts.dropped += uint64(len(events))
		return nil
	case r.version > b.from:
		return fmt.Errorf("apply: a batch from %d to %d, but %d is reached", b.from, b.to, r.version)
	}
	r.version = b.from // the bookmark that begins a batch is one
	var gone, changed []*wire.Object
	for _, ev := range events {
		if ev.Type != wire.Deleted {
			r.checkSchema(ev.Object)
			changed = append(changed, ev.Object)
		} else if old, have := r.tree.Get(ev.Object); have {
			gone = append(gone, old)
		}
	}
	now := r.cfg.Clock.Now()
	r.counts.applied += uint64(len(events))
	r.sign(now)
	defer r.broadcast()
	return r.follow(b, gone, changed, now)
}
