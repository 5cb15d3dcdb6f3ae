package lead

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
)

const retry = 200 * time.Millisecond

// LeaseStore keeps Leases. Errors are those of a Kubernetes API. What is returned may be changed.
type LeaseStore interface {
	// List reads those of a namespace, with a name only that one.
	List(ctx context.Context, namespace, name string) (*coordinationv1.LeaseList, error)
	// Follow shows each change of a Lease after the version of a List, and leaves none out, until it cannot, take fails,
	// or ctx ends.
	Follow(ctx context.Context, namespace, name, version string,
		take func(lease *coordinationv1.Lease, deleted bool) error) error
	// Change changes a Lease as it is at that moment, at nobody's request: nobody is asked whether that may be.
	Change(ctx context.Context, namespace, name string, change func(*coordinationv1.Lease) error) error
}

// Election is the election of a pool's leader: who may hold the Leases of the pool, and who does. Each write is shown
// to it before its writer is answered (Wrote), so that nothing of the old leader is applied after the new one knows
// that it leads; Run follows the Lease, for the write whose request was cut off behind the store.
type Election struct {
	Store LeaseStore
	Fence *member.Fence
	Bars  *Bars
	Held  func() // told when a holder has written its Lease here; nil: nobody asks
	Only  string // organization that who leads has; "": any hub may
	// Refuses tells why a node may not hold the election Lease, "" if it may: see Jury. nil: there is no jury.
	Refuses func(node string, renews bool, age time.Duration) string
	// LeftOut reports whether the pool has another coordinator now: nobody is elected here any more. The holder of the
	// Lease may renew it, until it goes there. nil: it never is.
	LeftOut func() bool
	Clock   clock.Clock
	Logger  *slog.Logger

	tenure member.Tenure // of the election Lease
}

// Wrote takes a Lease that was written, or deleted, through this coordinator. Most are of no interest.
func (e *Election) Wrote(lease *coordinationv1.Lease, deleted bool) {
	if lease.Namespace != contract.LeaseNamespace || lease.Name != contract.ElectionLease {
		return
	}
	s, err := sight(lease, deleted)
	if err != nil {
		return
	}
	e.Fence.Observe(s)
	e.tenure.Saw(s.Version, e.Clock.Now())
	if s.Holder != "" && e.Held != nil {
		e.Held()
	}
}

// Run follows the Lease until ctx ends.
func (e *Election) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := e.follow(ctx); err != nil && ctx.Err() == nil {
			e.Logger.Debug("the watch of the election lease ended", "err", err)
		}
		process.Pause(ctx, e.Clock, retry)
	}
	return nil
}

func (e *Election) follow(ctx context.Context) error {
	version, err := e.Begin(ctx)
	if err != nil {
		return err
	}
	return e.Store.Follow(ctx, contract.LeaseNamespace, contract.ElectionLease, version, e.Follow)
}

// Begin reads the Lease as it is, and the version after which Follow takes each change.
func (e *Election) Begin(ctx context.Context) (version string, err error) {
	s, version, err := e.read(ctx)
	if err == nil {
		e.follows(s, true)
	}
	return version, err
}

func (e *Election) read(ctx context.Context) (s member.Sighting, version string, err error) {
	list, err := e.Store.List(ctx, contract.LeaseNamespace, contract.ElectionLease)
	if err != nil {
		return s, "", fmt.Errorf("read the election lease: %w", err)
	}
	s, err = sightList(list)
	return s, list.ResourceVersion, err
}

// Follow takes the next change of the Lease.
func (e *Election) Follow(lease *coordinationv1.Lease, deleted bool) error {
	s, err := sight(lease, deleted)
	if err == nil {
		e.follows(s, false)
	}
	return err
}

func (e *Election) follows(s member.Sighting, first bool) {
	e.Fence.Follow(s, first)
	e.tenure.Saw(s.Version, e.Clock.Now())
}

// look reads the Lease as it is now: the watch may be a moment behind.
func (e *Election) look(ctx context.Context) error {
	s, _, err := e.read(ctx)
	if err == nil {
		e.Fence.Observe(s)
	}
	return err
}

// Hubs implements Leases, by the Leases of nodes.
func (e *Election) Hubs(ctx context.Context) map[string]string {
	list, err := e.Store.List(ctx, contract.NodeLeaseNamespace, "")
	if err != nil {
		e.Logger.Debug("cannot list the Leases of nodes", "err", err)
		return nil
	}
	all := map[string]string{}
	for _, l := range list.Items {
		if address := l.Annotations[contract.PoolAddress]; address != "" {
			all[l.Name] = address
		}
	}
	return all
}

// Free implements Leases.
func (e *Election) Free(ctx context.Context, l member.Leader) error {
	return e.Store.Change(ctx, contract.LeaseNamespace, contract.ElectionLease, func(lease *coordinationv1.Lease) error {
		s, err := sight(lease, false)
		if err != nil {
			return err
		}
		e.Fence.Observe(s)
		if err := e.Fence.Admit(l); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(string), nil
		delete(lease.Annotations, contract.PoolAddress)
		return nil
	})
}
