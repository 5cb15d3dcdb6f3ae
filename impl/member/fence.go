package member

import (
	"fmt"
	"sync"

	"github.com/weir-edge/weir/impl/contract"
)

// Sighting is the election Lease as it was seen.
type Sighting struct {
	Version uint64 // resourceVersion; of a Lease that does not exist, a version at which it did not
	Holder  string // identity; "" if nobody holds it
	Address string // where the holder shows its relays
}

// Leader is who holds the election Lease.
type Leader struct {
	Node    string // "": nobody does
	Address string // of its hub, for its pool; "": it has not told
	Term    contract.Term
}

// Fence decides who is read. See the package comment for its rules. It does no I/O.
type Fence struct {
	Incarnation string
	Moved       func() // called after a change of the Leader; nil: nobody asks

	mu    sync.Mutex
	seen  Sighting // the newest
	known bool     // seen is set
	term  uint64   // version at which the present holder's term began, as far as is known

	followed Sighting // the last of the watch, which leaves no write out
	follows  bool     // followed is set
}

// Observe takes a sighting. Older ones than the newest are passed over: they come late, from the watch, when the write
// itself or a read was quicker.
func (f *Fence) Observe(s Sighting) {
	f.mu.Lock()
	moved := f.see(s)
	f.mu.Unlock()
	f.tell(moved)
}

// Follow takes a sighting of the watch. first tells that writes may lie between it and the one before. If none does, a
// new holder's term is known to begin here: also that of one who held the Lease at every other sighting.
func (f *Fence) Follow(s Sighting, first bool) {
	f.mu.Lock()
	moved := f.see(s)
	if !first && f.follows && s.Version > f.followed.Version && s.Holder != f.followed.Holder && s.Version > f.term {
		f.term, moved = s.Version, true
	}
	f.followed, f.follows = s, true
	f.mu.Unlock()
	f.tell(moved)
}

func (f *Fence) see(s Sighting) (moved bool) {
	if f.known && s.Version <= f.seen.Version {
		return false
	}
	if s.Holder != f.seen.Holder {
		f.term = s.Version
	}
	moved = s.Holder != f.seen.Holder || s.Address != f.seen.Address
	f.seen, f.known = s, true
	return moved
}

func (f *Fence) tell(moved bool) {
	if moved && f.Moved != nil {
		f.Moved()
	}
}

// Leader is the present one.
func (f *Fence) Leader() Leader {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := contract.NodeOfIdentity(f.seen.Holder)
	if node == "" {
		return Leader{}
	}
	return Leader{node, f.seen.Address, contract.Term{Incarnation: f.Incarnation, Version: f.term}}
}

// Admit tells by an error that a leader is no longer the present one, in the same term. It is asked before each change
// that what comes from a leader makes.
func (f *Fence) Admit(l Leader) error {
	switch now := f.Leader(); {
	case now.Node == "":
		return fmt.Errorf("nobody holds the election Lease %s/%s", contract.LeaseNamespace, contract.ElectionLease)
	case l.Node == "" || now.Node != l.Node:
		return fmt.Errorf("node %s holds the election Lease, not %q", now.Node, l.Node)
	case now.Term != l.Term:
		return fmt.Errorf("term %s is over, a later one began at %d", l.Term, now.Term.Version)
	}
	return nil
}
