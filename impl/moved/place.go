package moved

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// place is where a slice sends callers of a pod.
type place struct {
	node    string
	uid     types.UID
	address netip.Addr
	serving bool
}

// correct is a place as it is now. keep: it is still one. Only the pod's own node is heard: two nodes may speak of the
// same uid, and the slice says which of them has it.
func (s *Set) correct(p place) (now place, keep bool) {
	n := s.nodes[p.node]
	if n == nil { // of another pool, or of no node
		return p, true
	}
	if h := n.of[p.uid]; h != nil {
		if !h.Stays {
			p.address = h.of(p.address.Is4())
		}
		if !p.address.IsValid() { // as the cloud: who is gone, or has no address yet, is in no slice
			return p, false
		}
		p.serving = h.Ready
	}
	if s.silent(n) {
		p.serving = false
	}
	return p, !s.lost(p)
}

// lost reports whether a place has an address that another pod has now. A node is believed of pods of its own, and of
// others that nobody may call anyway.
func (s *Set) lost(p place) bool {
	by, is := s.taken[p.address]
	if !is || by == (owner{p.node, p.uid}) {
		return false
	}
	if s.Moved(p.node, p.uid) && !s.silent(s.nodes[p.node]) { // it has the address, too, as it says
		return false
	}
	return by.node == p.node || !p.serving
}
