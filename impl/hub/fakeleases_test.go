package hub

import (
	"slices"
	"sync"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/lease"
)

// leaseLog are Leases that remember who wrote them: those of nodes, and who took the election's.
type leaseLog struct {
	*lease.Store

	mu      sync.Mutex
	writes  []leaseWrite
	leader  string
	leaders []string // in order
	reports []string // users that wrote what a pool reports, in order
}

// led are the nodes that took the election's, in order.
func (f *leaseLog) led() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.leaders...)
}

// leaseWrite is one write of a node's Lease that was applied. Its order is among those of all stores of a test.
type leaseWrite struct {
	order     int64
	user      string
	lease     *coordinationv1.Lease
	delegated bool
}

var leaseWrites atomic.Int64

func newLeaseLog(life string, version uint64) *leaseLog {
	f := &leaseLog{Store: lease.New(life, version)}
	f.Wrote = func(by string, l *coordinationv1.Lease) {
		f.mu.Lock()
		defer f.mu.Unlock()
		node := contract.NodeOfIdentity(*l.Spec.HolderIdentity)
		switch {
		case l.Namespace == contract.NodeLeaseNamespace:
			f.writes = append(f.writes, leaseWrite{leaseWrites.Add(1), by, l, lease.IsDelegated(l)})
		case l.Namespace == contract.KeyNamespace && by != "":
			f.reports = append(f.reports, by)
		case l.Name == contract.ElectionLease && node != f.leader:
			if f.leader = node; node != "" {
				f.leaders = append(f.leaders, node)
			}
		}
	}
	return f
}

// get returns the Lease of a node, nil if there is none.
func (f *leaseLog) get(node string) *coordinationv1.Lease {
	return f.Of(node)
}

// reported are the users that wrote what a pool reports, in order.
func (f *leaseLog) reported() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reports)
}

// written are the writes so far.
func (f *leaseLog) written() []leaseWrite {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]leaseWrite(nil), f.writes...)
}
