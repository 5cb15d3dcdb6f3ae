package coordinator

import (
	"fmt"
	"sync"

	"github.com/weir-edge/weir/impl/contract"
)

// refusal says why a feed is refused. Its reason is a label of a metric.
type refusal struct {
	reason  string // "incarnation", "holder", "term"
	message string
}

func (r *refusal) Error() string { return r.message }

// sighting is the election Lease as it was seen.
type sighting struct {
	version uint64 // resourceVersion; of a Lease that does not exist, a version at which it did not
	holder  string // identity; "" if nobody holds it
}

// fence decides who may feed. See the package comment for its rules. It does no I/O.
type fence struct {
	incarnation string
	moved       func() // called after a change that may end a feed; nil: nobody asks

	mu    sync.Mutex
	seen  sighting // the newest
	known bool     // seen is set
	floor uint64   // terms below are over

	followed sighting // the last of the watch, which leaves no write out
	follows  bool     // followed is set
}

// observe takes a sighting. Older ones than the newest are passed over: they come late, from the watch, when the write itself
// or a read was quicker.
func (f *fence) observe(s sighting) {
	f.mu.Lock()
	moved := f.see(s)
	f.mu.Unlock()
	f.tell(moved)
}

// follow takes a sighting of the watch. first tells that writes may lie between it and the one before. If none does, a new
// holder's term is known to begin here, even before it feeds.
func (f *fence) follow(s sighting, first bool) {
	f.mu.Lock()
	moved := f.see(s)
	if !first && f.follows && s.version > f.followed.version && s.holder != "" && s.holder != f.followed.holder && s.version > f.floor {
		f.floor, moved = s.version, true
	}
	f.followed, f.follows = s, true
	f.mu.Unlock()
	f.tell(moved)
}

func (f *fence) see(s sighting) (moved bool) {
	if f.known && s.version <= f.seen.version {
		return false
	}
	moved = s.holder != f.seen.holder
	f.seen, f.known = s, true
	return moved
}

func (f *fence) tell(moved bool) {
	if moved && f.moved != nil {
		f.moved()
	}
}

// open admits a new feed, and ends those of earlier terms.
func (f *fence) open(t contract.Term, node string) error {
	moved, err := f.begin(t, node)
	f.tell(moved)
	return err
}

func (f *fence) begin(t contract.Term, node string) (moved bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.Incarnation != f.incarnation {
		return false, &refusal{"incarnation", fmt.Sprintf("term %s is of another life of this coordinator, now %s: read the election Lease again", t, f.incarnation)}
	}
	if err := f.check(t, node); err != nil {
		return false, err
	}
	if t.Version > f.seen.version {
		return false, &refusal{"term", fmt.Sprintf("term %s is ahead of the election Lease, at %d", t, f.seen.version)}
	}
	moved = t.Version > f.floor
	f.floor = max(f.floor, t.Version)
	return moved, nil
}

// admit tells whether a feed that was opened may go on.
func (f *fence) admit(t contract.Term, node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.check(t, node)
}

func (f *fence) check(t contract.Term, node string) error {
	switch holder := contract.NodeOfIdentity(f.seen.holder); {
	case holder == "":
		return &refusal{"holder", fmt.Sprintf("nobody holds the election Lease %s/%s", contract.LeaseNamespace, contract.ElectionLease)}
	case holder != node:
		return &refusal{"holder", fmt.Sprintf("node %s holds the election Lease, not %s", holder, node)}
	case t.Version < f.floor:
		return &refusal{"term", fmt.Sprintf("term %s is over, a later one began at %d", t, f.floor)}
	}
	return nil
}

// state is the present leader and term, for people.
func (f *fence) state() (leader string, term string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.floor > 0 {
		term = contract.Term{Incarnation: f.incarnation, Version: f.floor}.String()
	}
	return contract.NodeOfIdentity(f.seen.holder), term
}
