package coordinator

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/role"
)

// The pauses before a watch of Leases that broke is opened again: they grow from the first to the longest.
const (
	FirstLeasesRetry = 200 * time.Millisecond
	MaxLeasesRetry   = 5 * time.Second
)

// LeaseEvent is a Lease of the pool as a watch shows it.
type LeaseEvent struct {
	Name   string
	Record role.Record
}

// Leases watches the pool's Leases, so that a change of the leader is seen at once; of a leader hub, how it stands. The
// machine's own reads go on beside it, so nothing depends on it but speed.
type Leases struct {
	*Client
	Events chan<- LeaseEvent
	Broke  func() // told when a watch broke: the coordinator may be away
}

// Run watches until ctx ends.
func (l *Leases) Run(ctx context.Context) error {
	for wait := FirstLeasesRetry; ctx.Err() == nil; wait = min(max(2*wait, FirstLeasesRetry), MaxLeasesRetry) {
		began, used := l.Clock.Now(), l.InUse()
		err := l.look(ctx, used)
		if l.Clock.Since(began) > MaxLeasesRetry { // a coordinator ends watches after half an hour or more
			wait = FirstLeasesRetry
		}
		l.Logger.Debug("the watch of the pool's leases ended", "err", err)
		if used.left.Err() != nil { // left for another one
			wait = 0
			continue
		}
		used.stands(serving, l.Moved) // until a probe has found it ready
		l.Broke()
		_, resting, cancel := l.With(ctx)
		process.Pause(resting, l.Clock, wait)
		cancel()
	}
	return nil
}

// look tells of changes until what tells of them breaks.
func (l *Leases) look(ctx context.Context, used *Use) error {
	if used.Node == "" {
		return l.WatchLeases(ctx, func(e LeaseEvent) {
			select {
			case l.Events <- e:
			case <-ctx.Done():
			}
		})
	}
	r, ctx, cancel := l.With(ctx)
	defer cancel()
	if r != used.Replica {
		return nil
	}
	return r.followStanding(ctx, func(s contract.Standing) {
		if fresh := standing(used.standing.Load()) == ready; fresh != s.Fresh {
			l.Logger.Debug("a leader hub says how it stands", "node", used.Node, "fresh", s.Fresh)
			if !s.Fresh {
				used.stands(serving, l.Moved)
			}
			l.Broke() // a probe decides, and finds another one if there is one
		}
	})
}

// WatchLeases tells of the pool's two Leases as they are and as they change, until the watch ends.
func (c *Client) WatchLeases(ctx context.Context, take func(LeaseEvent)) error {
	r, ctx, cancel := c.With(ctx)
	defer cancel()
	return r.WatchLeases(ctx, LeasesPath, "", func(kind string, l *coordinationv1.Lease) {
		e := LeaseEvent{Name: l.Name}
		if kind != "DELETED" {
			e.Record = FromLease(l)
		}
		if e.Name == contract.ElectionLease || e.Name == contract.InformerSync {
			take(e)
		}
	})
}
