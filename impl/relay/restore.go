package relay

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// ErrSynced refuses a restoration that comes when the relay has been fed: what a source says is newer than any disk.
var ErrSynced = errors.New("the relay has been fed already")

// Restoration rebuilds the content of an Export: Add each object, Apply each change, then Finish. Until then the relay
// knows nothing of it, and a restoration that is given up leaves no trace. It is not safe for concurrent use.
type Restoration struct {
	*mvcc.Restoration
	r       *Relay
	history History
	newer   newer
}

// Restoration begins to rebuild a state at a version.
func (r *Relay) Restoration(version uint64) *Restoration {
	x := &Restoration{r: r, newer: newer{schema: r.newer.schema}}
	x.Restoration = mvcc.NewRestoration(r.cfg.Resource.encoding, version, r.cfg.RingBytes, r.cfg.Clock.Now(),
		func(o *wire.Object) { x.newer.look(o) })
	return x
}

// In says which history the versions are of, if that is not the first.
func (x *Restoration) In(h History) { x.history = h }

// Finish gives the relay what was rebuilt, without a batch that is not complete. From then on it serves, as fresh as it
// was at asOf by the wall clock: there is no other clock across a restart. It counts as restored, and not as fresh
// however young it is, until its source shows a sign. Events age from now on: the time for which nobody could be served
// took nothing from a client's time to come back.
func (x *Restoration) Finish(asOf time.Time) error {
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
	r.state.Adopt(x.State())
	r.history = x.history
	r.synced, r.restored = true, true
	r.said++
	r.progress = asOf.Round(0) // without the monotonic clock: when the wall clock is set, the age is right
	r.newer.field = cmp.Or(r.newer.field, x.newer.field)
	r.broadcast()
	r.show(r.cfg.Clock.Now())
	return nil
}
