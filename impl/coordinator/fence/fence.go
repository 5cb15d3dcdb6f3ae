package fence

import (
	"fmt"
	"sync"

	"github.com/weir-edge/weir/impl/contract"
)

// RefusedError says why a feed is refused. Its reason is a label of a metric.
type RefusedError struct {
	Reason  string // "incarnation", "holder", "term", "history", "offer"
	Message string
}

func (r *RefusedError) Error() string { return r.Message }

// Sighting is the election Lease as it was seen.
type Sighting struct {
	Version uint64 // resourceVersion; of a Lease that does not exist, a version at which it did not
	Holder  string // identity; "" if nobody holds it
}

// Fence decides who may feed. See the package comment for its rules. It does no I/O.
type Fence struct {
	Incarnation string
	Moved       func() // called after a change that may end a feed; nil: nobody asks

	mu    sync.Mutex
	seen  Sighting // the newest
	known bool     // seen is set
	floor uint64   // terms below are over

	followed Sighting // the last of the watch, which leaves no write out
	follows  bool     // followed is set
	began    uint64   // version of the first of these
	written  bool     // here, since the start
}

// Observe takes a sighting. Older ones than the newest are passed over: they come late, from the watch, when the write itself
// or a read was quicker.
func (f *Fence) Observe(s Sighting) {
	f.mu.Lock()
	moved := f.see(s)
	f.mu.Unlock()
	f.tell(moved)
}

// Written takes the sighting of a write that was done here.
func (f *Fence) Written(s Sighting) {
	f.mu.Lock()
	f.written = true
	f.mu.Unlock()
	f.Observe(s)
}

// Follow takes a sighting of the watch. first tells that writes may lie between it and the one before. If none does, a new
// holder's term is known to begin here, even before it feeds.
func (f *Fence) Follow(s Sighting, first bool) {
	f.mu.Lock()
	moved := f.see(s)
	if !first && f.follows && s.Version > f.followed.Version && s.Holder != "" && s.Holder != f.followed.Holder && s.Version > f.floor {
		f.floor, moved = s.Version, true
	}
	if !f.follows {
		f.began = s.Version
	}
	f.followed, f.follows = s, true
	f.mu.Unlock()
	f.tell(moved)
}

func (f *Fence) see(s Sighting) (moved bool) {
	if f.known && s.Version <= f.seen.Version {
		return false
	}
	moved = s.Holder != f.seen.Holder
	f.seen, f.known = s, true
	return moved
}

func (f *Fence) tell(moved bool) {
	if moved && f.Moved != nil {
		f.Moved()
	}
}

// Open admits a new feed, and ends those of earlier terms.
func (f *Fence) Open(t contract.Term, node string) error {
	moved, err := f.begin(t, node)
	f.tell(moved)
	return err
}

func (f *Fence) begin(t contract.Term, node string) (moved bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.Incarnation != f.Incarnation {
		return false, &RefusedError{"incarnation", fmt.Sprintf("term %s is of another life of this coordinator, now %s: read the election Lease again", t, f.Incarnation)}
	}
	if err := f.check(t, node); err != nil {
		return false, err
	}
	if t.Version > f.seen.Version {
		return false, &RefusedError{"term", fmt.Sprintf("term %s is ahead of the election Lease, at %d", t, f.seen.Version)}
	}
	moved = t.Version > f.floor
	f.floor = max(f.floor, t.Version)
	return moved, nil
}

// Admit tells whether a feed that was opened may go on.
func (f *Fence) Admit(t contract.Term, node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.check(t, node)
}

func (f *Fence) check(t contract.Term, node string) error {
	switch holder := contract.NodeOfIdentity(f.seen.Holder); {
	case holder == "":
		return &RefusedError{"holder", fmt.Sprintf("nobody holds the election Lease %s/%s", contract.LeaseNamespace, contract.ElectionLease)}
	case holder != node:
		return &RefusedError{"holder", fmt.Sprintf("node %s holds the election Lease, not %s", holder, node)}
	case t.Version < f.floor:
		return &RefusedError{"term", fmt.Sprintf("term %s is over, a later one began at %d", t, f.floor)}
	}
	return nil
}

// Held is the holder's node, and a term that is its present one or later; held is false if nobody leads. After a start the holder's own term is
// not known before it feeds.
func (f *Fence) Held() (leader string, term contract.Term, held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	leader = contract.NodeOfIdentity(f.seen.Holder)
	return leader, contract.Term{Incarnation: f.Incarnation, Version: max(f.floor, f.seen.Version)}, leader != ""
}

// Kept is Held of a Lease that nobody has written since the start.
func (f *Fence) Kept() (leader string, term contract.Term, kept bool) {
	leader, term, held := f.Held()
	f.mu.Lock()
	defer f.mu.Unlock()
	return leader, term, held && !f.written && f.follows && f.seen.Version == f.began
}

// State is the present leader and term, for people.
func (f *Fence) State() (leader string, term string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.floor > 0 {
		term = contract.Term{Incarnation: f.Incarnation, Version: f.floor}.String()
	}
	return contract.NodeOfIdentity(f.seen.Holder), term
}
