package pool

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
)

// Failure is a way that fails, as the hub of a node found it. It is in no object.
//
// +kubebuilder:object:generate=false
type Failure struct {
	Node string // whose hub tells
	digest.Edge
	Told time.Time
}

// Says tells for people what fails.
func (f Failure) Says() string { return f.Edge.Says(f.Node) }

// Failures are the ways that fail, as the hubs of some nodes told not long ago, and how many more they did not name. A
// node that is off tells nothing, and nothing is told of the way to it. One that is cut off does not reach the cloud,
// which is all that is known of it. A hub without its pool that names no way tells
// why it is: then its first way fails.
func (s *Status) Failures(nodes []corev1.Node, now time.Time) (all []Failure, more int) {
	off := map[string]bool{}
	for i := range nodes {
		if n := &nodes[i]; !condition(n, corev1.NodeReady) {
			off[digest.Peer(n.Name)] = true
			for _, a := range n.Status.Addresses {
				off[a.Address] = true
			}
		}
	}
	for i := range nodes {
		if n := &nodes[i]; condition(n, contract.CutOffCondition) {
			e := digest.Edge{Way: digest.ToCloud, Peer: "the cloud", Cause: digest.CutOff}
			all = append(all, Failure{n.Name, e, now})
			continue
		}
		h := s.Hub(nodes[i].Name)
		if h == nil || off[digest.Peer(h.Node)] || now.Sub(h.Told.Time) > digest.Lapsed {
			continue
		}
		count, named := h.Digest().Edges.List()
		if count == 0 {
			named = s.lacks(h)
		}
		more += max(count-len(named), 0)
		for _, e := range named {
			if !off[e.Peer] {
				all = append(all, Failure{h.Node, e, h.Told.Time})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Failure) int { return strings.Compare(a.Node, b.Node) })
	return all, more
}

// lacks is the first way of a hub without its pool, by the cause that it tells.
func (s *Status) lacks(h *Hub) []digest.Edge {
	if h.Role != string(digest.Pending) || !digest.OfWay(h.Cause) {
		return nil
	}
	if s.Mode == ModeLeaderHubs {
		return []digest.Edge{{Way: digest.ToHub, Peer: "the leader hubs", Port: contract.HubPoolPort, Cause: h.Cause}}
	}
	return []digest.Edge{
		{Way: digest.ToCoordinator, Peer: "the coordinator", Port: contract.CoordinatorPort, Cause: h.Cause},
	}
}

func condition(n *corev1.Node, kind corev1.NodeConditionType) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}
