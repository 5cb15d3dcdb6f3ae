package virtual

import (
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

// TestNobodySeizesTheElection: a hub that does not wait is refused by the coordinator's rules, until the Lease is free.
func TestNobodySeizesTheElection(t *testing.T) {
	p, leader, other := wellPool(t)
	l := &p.coord.leases
	seize := func(name string) role.Outcome {
		r := l.read(name)
		r.Holder = other.name + "_eager"
		_, outcome := l.write(name, other.name, r, true, other.wall())
		return outcome
	}
	if got := seize(contract.InformerSync); got != role.Failed {
		t.Errorf("who does not lead says that the pool is fresh: %v", got)
	}
	if got := seize(contract.ElectionLease); got != role.Conflict {
		t.Errorf("the Lease of %s, who lives, is taken: %v", leader.name, got)
	}
	if err := l.election.Free(t.Context(), p.coord.leader); err != nil {
		t.Fatal(err)
	}
	if got := seize(contract.ElectionLease); got != role.OK {
		t.Errorf("a free Lease cannot be taken: %v", got)
	}
	if got := seize(contract.InformerSync); got != role.OK {
		t.Errorf("who leads cannot say that the pool is fresh: %v", got)
	}
}
