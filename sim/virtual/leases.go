package virtual

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/inmemory"
	"github.com/weir-edge/weir/impl/coordinator/lead"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

// leases are the two Leases of the pool: the coordinator's disk, and what its process makes of it by the real rules.
type leases struct {
	disk     *lease.Store
	lives    int // of the disk
	election *lead.Election
	watches  []*leaseWatch
}

// leaseWatch is one watch of both Leases.
type leaseWatch struct {
	take func(name string, r role.Record)
}

// wipe begins a new life.
func (l *leases) wipe() {
	l.lives++
	l.disk = lease.New(strconv.Itoa(l.lives), 0)
}

// boot is a start of the coordinator: the fence follows the Lease from what is stored.
func (l *leases) boot(s *server, moved func(), bars *lead.Bars) {
	l.watches = nil
	l.election = &lead.Election{
		Store: l.disk, Fence: &member.Fence{Incarnation: strconv.Itoa(l.lives), Moved: moved}, Bars: bars, Clock: s.clock,
		Logger: slog.New(slog.DiscardHandler),
	}
	inmemory.Obey(l.disk, l.election)
	l.disk.Wrote = func(_ string, lease *coordinationv1.Lease) {
		if lease.Name == contract.ElectionLease {
			must(l.election.Follow(lease, false))
		}
		for _, w := range slices.Clone(l.watches) {
			w.take(lease.Name, coordinator.FromLease(lease))
		}
	}
	_, err := l.election.Begin(context.Background())
	must(err)
}

// read returns a Lease as it is.
func (l *leases) read(name string) role.Record {
	lease, err := l.disk.Get(context.Background(), contract.LeaseNamespace, name)
	if err != nil {
		return role.Record{}
	}
	return coordinator.FromLease(lease)
}

// write stores a Lease for a node if the stored one is the one that it was read from.
func (l *leases) write(name, node string, r role.Record, acquire bool, wall time.Time) (role.Record, role.Outcome) {
	if acquire {
		r.AcquireTime = wall
	}
	r.RenewTime = wall
	do := l.disk.Update
	if !r.Exists {
		do = l.disk.Create
	}
	switch written, err := do(context.Background(), contract.NodeUserPrefix+node, coordinator.ToLease(name, r)); {
	case err == nil:
		return coordinator.FromLease(written), role.OK
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return role.Record{}, role.Conflict
	}
	return role.Record{}, role.Failed
}

// watch shows the Leases as they are and as they change, until stop is called.
func (l *leases) watch(take func(name string, r role.Record)) (stop func()) {
	for _, name := range []string{contract.ElectionLease, contract.InformerSync} {
		if r := l.read(name); r.Exists {
			take(name, r)
		}
	}
	w := &leaseWatch{take}
	l.watches = append(l.watches, w)
	return func() {
		l.watches = slices.DeleteFunc(l.watches, func(o *leaseWatch) bool { return o == w })
	}
}
