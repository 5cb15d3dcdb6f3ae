package virtual

import (
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

// LeaseOp is something that was done to the election Lease, or by its right: a history of them can be checked.
type LeaseOp struct {
	Kind  string        // read, write, wipe, or effective: the coordinator took a change of the node Holder
	From  time.Duration // when it was sent
	Until time.Duration // when its end was heard; below 0: never

	Based       string // version of the Lease that a write goes by, "" for none
	UID, Holder string // of that Lease, and the holder that a write puts in

	Outcome role.Outcome // OK, Conflict (refused), or Failed: nobody knows
	Is      role.Record  // what was read or written; if Failed, what was written if it was
}

// leaseOp notes an operation that begins now.
func (p *Pool) leaseOp(x LeaseOp) *LeaseOp {
	x.From, x.Until = p.Now(), -1
	if p.cfg.Lease != nil {
		p.cfg.Lease(&x)
	}
	return &x
}

// at notes an operation that begins and ends now.
func (p *Pool) at(x LeaseOp) { p.leaseOp(x).Until = p.Now() }

// leaseOp notes what an action does to the election Lease, nil if nothing.
func (h *Hub) leaseOp(a role.Action) *LeaseOp {
	x := LeaseOp{Outcome: role.Failed}
	switch a.Kind {
	case role.ReadElection:
		x.Kind = "read"
	case role.Acquire, role.Renew, role.Release:
		x.Kind, x.Holder, x.UID = "write", a.Lease.Holder, a.Lease.UID
		if a.Lease.Exists {
			x.Based = a.Lease.Version
		}
	default:
		return &LeaseOp{}
	}
	return h.pool.leaseOp(x)
}

// freed notes that the coordinator took the Lease from its holder.
func (c *Coordinator) freed(before role.Record) {
	is := c.leases.read(contract.ElectionLease)
	if is.Version != before.Version {
		c.pool.at(LeaseOp{Kind: "write", Based: before.Version, UID: before.UID, Holder: is.Holder, Is: is})
	}
}
