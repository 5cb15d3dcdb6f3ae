package virtual

import (
	"slices"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/role"
)

// leases are the two Leases of the pool as the coordinator's etcd keeps them. Its life ends with the disk.
type leases struct {
	loop        *Loop
	incarnation int
	version     uint64
	records     map[string]role.Record // by name
	fence       *fence.Fence
	tenure      *fence.Tenure
	watches     []*leaseWatch
	barred      func(node string) bool
}

// leaseWatch is one watch of both Leases.
type leaseWatch struct {
	take func(name string, r role.Record)
}

// wipe begins a new life.
func (l *leases) wipe() {
	l.incarnation, l.version, l.records = l.incarnation+1, 0, map[string]role.Record{}
}

// boot is a start of the coordinator: the fence follows the Lease from what is stored.
func (l *leases) boot(moved func(), barred func(node string) bool) {
	l.watches, l.barred = nil, barred
	l.fence = &fence.Fence{Incarnation: strconv.Itoa(l.incarnation), Moved: moved}
	s := fence.Sighting{Version: l.version}
	if r := l.records[contract.ElectionLease]; r.Exists {
		s = sighting(r)
	}
	l.fence.Follow(s, true)
	l.tenure = &fence.Tenure{}
	l.tenure.Saw(s.Version, l.now())
}

// now is the coordinator's clock.
func (l *leases) now() time.Time { return began.Add(l.loop.Now()) }

// refuses tells whether the coordinator lets a node not write a Lease.
func (l *leases) refuses(name, node string) (role.Outcome, bool) {
	leader := l.records[contract.ElectionLease]
	switch holder := contract.NodeOfIdentity(leader.Holder); {
	case holder == node:
		return role.OK, false
	case name == contract.InformerSync:
		return role.Failed, true
	case holder == "":
		return role.OK, false
	}
	return role.Conflict, l.tenure.Age(sighting(leader).Version, l.now()) < leader.Duration
}

func sighting(r role.Record) fence.Sighting {
	version, _ := strconv.ParseUint(r.Version, 10, 64)
	return fence.Sighting{Version: version, Holder: r.Holder}
}

// write stores a Lease for a node if the stored one is the one that it was read from.
func (l *leases) write(name, node string, r role.Record, acquire bool, wall time.Time) (role.Record, role.Outcome) {
	stored := l.records[name]
	if stored.Exists != r.Exists || r.Exists && (stored.UID != r.UID || stored.Version != r.Version) {
		return role.Record{}, role.Conflict
	}
	if name == contract.ElectionLease && r.Holder != "" && l.barred(node) {
		return role.Record{}, role.Conflict
	}
	if why, refused := l.refuses(name, node); refused {
		return role.Record{}, why
	}
	if !r.Exists {
		r.UID = strconv.Itoa(l.incarnation) + name
	}
	if acquire {
		r.AcquireTime = wall
	}
	r.RenewTime = wall
	return l.store(name, r), role.OK
}

// free takes the election Lease from its holder.
func (l *leases) free() {
	r := l.records[contract.ElectionLease]
	r.Holder = ""
	l.store(contract.ElectionLease, r)
}

func (l *leases) store(name string, r role.Record) role.Record {
	l.version++
	r.Exists, r.Version = true, strconv.FormatUint(l.version, 10)
	l.records[name] = r
	if name == contract.ElectionLease {
		l.tenure.Saw(l.version, l.now())
		l.fence.Observe(sighting(r))
		l.fence.Follow(sighting(r), false)
	}
	for _, w := range slices.Clone(l.watches) {
		w.take(name, r)
	}
	return r
}

// watch shows the Leases as they are and as they change, until stop is called.
func (l *leases) watch(take func(name string, r role.Record)) (stop func()) {
	for _, name := range []string{contract.ElectionLease, contract.InformerSync} {
		if r := l.records[name]; r.Exists {
			take(name, r)
		}
	}
	w := &leaseWatch{take}
	l.watches = append(l.watches, w)
	return func() {
		l.watches = slices.DeleteFunc(l.watches, func(o *leaseWatch) bool { return o == w })
	}
}
