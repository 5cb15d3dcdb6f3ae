package moved

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Times of a Set.
const (
	Every   = 5 * time.Second  // between two statements of a node
	Silence = 30 * time.Second // after which the pods of a node are not ready
	Notices = 10 * time.Second // until a node finds out that it is cut off, and states
)

// MaxNodes bounds a pool.
const MaxNodes = 500

// Set is what a hub knows of the moved pods of its pool. Its time is that of the local monotonic clock. It is not safe
// for concurrent use.
type Set struct {
	nodes map[string]*node
	taken map[netip.Addr]owner // addresses that corrected pods have now
	idle  bool                 // nothing is corrected
	away  bool
	last  time.Duration // of Expire
	began bool          // last is set
}

// node is what its hub said.
type node struct {
	number, beat uint64
	quiet        time.Duration // how long the desk was read, and had nothing new of the node
	of           map[types.UID]*held
	lapsed       bool // corrections were left without a word of the node: they count again when it says them again
}

// held is a correction.
type held struct {
	Correction
	left bool    // the node has taken it back
	at   Reached // the cloud's slices say what is true at these versions
}

// owner is the pod that has an address.
type owner struct {
	node string
	uid  types.UID
}

// Errors of Take.
var (
	ErrStranger = errors.New("no node of the pool")
	ErrOld      = errors.New("an older statement than the last one of this node")
	ErrLacks    = errors.New("it is about contents that are not here: the whole statement is wanted")
)

// Members says which nodes the pool has. What others said is forgotten; one that is new counts as heard now.
func (s *Set) Members(names []string) error {
	if len(names) > MaxNodes {
		return fmt.Errorf("members: %d nodes, want %d at most", len(names), MaxNodes)
	}
	now := make(map[string]*node, len(names))
	for _, name := range names {
		if now[name] = s.nodes[name]; now[name] == nil {
			now[name] = &node{}
		}
	}
	s.nodes = now
	s.index()
	return nil
}

// Away says whether the cloud is away for the pool, of which nothing was heard for so long. While it is there, it alone
// decides who is silent. Nodes state from when they are cut off themselves, which is before the pool is known to be. So
// the time counts that they had for it.
func (s *Set) Away(away bool, unheard time.Duration) (changed bool) {
	if s.away == away {
		return false
	}
	for _, n := range s.nodes {
		was := s.silent(n)
		if n.quiet = min(n.quiet, max(unheard-Notices, 0)); !away {
			n.quiet = 0
		}
		changed = changed || was != (away && n.quiet >= Silence)
	}
	s.away = away
	s.index()
	return changed
}

// Take takes a statement that is signed by its node (Signed.Open), and reports whether it changes what is shown. The
// last statement may come again: then the node was not heard.
func (s *Set) Take(st Statement) (changed bool, err error) {
	n := s.nodes[st.Node]
	if n == nil {
		return false, fmt.Errorf("statement of %.80q: %w", st.Node, ErrStranger)
	}
	again := n.lapsed && st.Number == n.number && !st.Same // what it said before, and a newer beat repeats
	switch {
	case again:
	case st.Beat == n.beat && st.Number == n.number:
		return false, nil
	case st.Beat <= n.beat || st.Number < n.number:
		return false, fmt.Errorf("statement %d, beat %d of %s: %w", st.Number, st.Beat, st.Node, ErrOld)
	case st.Same && (st.Number != n.number || n.lapsed):
		return false, fmt.Errorf("statement %d of %s: %w", st.Number, st.Node, ErrLacks)
	}
	was := s.silent(n)
	if st.Beat > n.beat { // a desk that lost all is handed contents and beat in one
		n.beat, n.quiet = st.Beat, st.Age
	}
	changed = s.silent(n) != was // also one that the desk has not heard for long
	if again || st.Number > n.number {
		n.number = st.Number
		changed = n.replace(st) || changed
	}
	s.index()
	return changed, nil
}

// replace takes the corrections of a statement. Those that are gone from it stay until the cloud's slices have come.
func (n *node) replace(st Statement) (changed bool) {
	now := make(map[types.UID]*held, len(st.Corrections))
	n.lapsed = false
	for _, c := range st.Corrections {
		before := n.of[c.UID]
		changed = changed || before == nil || !before.equal(c)
		now[c.UID] = &held{Correction: c}
	}
	for uid, h := range n.of {
		if now[uid] == nil && len(now) < 2*MaxPods {
			if !h.left {
				h.left, h.at = true, st.At
			}
			now[uid] = h
		}
	}
	n.of = now
	return changed
}

// Expire is called when the desk of the pool was read, and what it had was taken. It reports whether that changes what
// is shown. Time in which nobody could read the desk makes nobody silent.
func (s *Set) Expire(now time.Duration) (changed bool) {
	step := min(now-s.last, 2*Every)
	if !s.began {
		step = 0
	}
	s.last, s.began = now, true
	if !s.away { // a lease, too: else the corrections of a node that is dead would outlive the cloud's word
		s.leave(func(n *node) bool { return n.quiet >= Silence })
	}
	for _, n := range s.nodes {
		was := s.silent(n)
		n.quiet += step
		changed = changed || s.silent(n) != was
	}
	s.index()
	return changed
}

func (s *Set) silent(n *node) bool { return s.away && n.quiet >= Silence }

// Idle reports whether nothing is corrected.
func (s *Set) Idle() bool { return s.idle || s.nodes == nil }

// Release withdraws all corrections: the cloud is there, and has the last word.
func (s *Set) Release() { s.leave(func(*node) bool { return true }) }

func (s *Set) leave(of func(*node) bool) {
	for _, n := range s.nodes {
		if len(n.of) == 0 || !of(n) {
			continue
		}
		n.lapsed = true
		for _, h := range n.of {
			h.left, h.at = true, Reached{}
		}
	}
}

// Settle forgets corrections that were withdrawn, once the cloud's slices have come as far as their nodes had them.
func (s *Set) Settle(reached Reached) {
	for _, n := range s.nodes {
		maps.DeleteFunc(n.of, func(_ types.UID, h *held) bool { return h.left && reached.covers(h.at) })
	}
	s.index()
}

// Leaving reports whether there are corrections that were withdrawn: Settle may forget them.
func (s *Set) Leaving() bool {
	for _, n := range s.nodes {
		for _, h := range n.of {
			if h.left {
				return true
			}
		}
	}
	return false
}

// Has reports whether a pod of a node is corrected.
func (s *Set) Has(name string, uid types.UID) bool {
	n := s.nodes[name]
	return n != nil && n.of[uid] != nil
}

// Moved reports whether a pod of a node is corrected in more than that it stays ready.
func (s *Set) Moved(name string, uid types.UID) bool {
	return s.Has(name, uid) && !s.nodes[name].of[uid].Stays
}

// Len is how many corrections there are.
func (s *Set) Len() (all int) {
	for _, n := range s.nodes {
		all += len(n.of)
	}
	return all
}

// index notes who has which address. A silent node holds none, nor does a pod with the address of its node.
func (s *Set) index() {
	s.taken, s.idle = map[netip.Addr]owner{}, true
	for name, n := range s.nodes {
		s.idle = s.idle && !s.silent(n) && len(n.of) == 0
		if s.silent(n) {
			continue
		}
		for uid, h := range n.of {
			for _, a := range h.Addresses {
				if !h.Host && h.Ready {
					s.taken[a] = owner{name, uid}
				}
			}
		}
	}
}
