package moved

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Settle forgets corrections that their nodes have withdrawn, and that the cloud's slices do not contradict any more.
// It is given all that the relays hold, uncorrected; nil: there is no relay of these.
func (s *Set) Settle(all iter.Seq[*discoveryv1.EndpointSlice], also iter.Seq[*corev1.Endpoints]) {
	open := map[owner]bool{}
	look := func(p place) {
		if n := s.nodes[p.node]; n != nil && n.of[p.uid] != nil {
			h := n.of[p.uid]
			a := h.of(p.address.Is4())
			open[owner{p.node, p.uid}] = open[owner{p.node, p.uid}] || a != p.address || h.Ready != p.serving
		}
	}
	if all != nil {
		for slice := range all {
			for i := range slice.Endpoints {
				if p, ok := placeOf(slice, i); ok {
					look(p)
				}
			}
		}
	}
	if also != nil {
		for e := range also {
			eachAddress(e, look)
		}
	}
	for name, n := range s.nodes {
		for uid, h := range n.of {
			if h.left && !open[owner{name, uid}] {
				delete(n.of, uid)
			}
		}
	}
	s.index()
}
