package coordinators

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// next is where the replicas are to be, and why that is not what the Pool asks for; "": it is. At most one replica of
// three is placed again at a time, while the two others serve. If fewer than two are left, all are: they begin as
// another cluster.
func (s *stand) next() (record, string) {
	want := replicas(s.Own.Spec.Coordinator)
	switch {
	case s.Silent:
		return s.record, ""
	case len(s.Nodes) == 0: // all have left: nobody asks it any more, and its node is to be as it was
		return record{Placements: s.Placements}, "the pool has no node"
	}
	var gone, alive []poolv1.Replica
	for _, r := range s.Replicas {
		if !s.remains(r) {
			gone = append(gone, r)
		}
		if s.ready(r) {
			alive = append(alive, r)
		}
	}
	switch {
	case len(s.Replicas) != want, want == 1 && len(gone) == 1, want > 1 && len(gone) > want/2 && len(alive) <= want/2:
		return s.anew(want)
	case len(gone) == 0:
		return s.record, ""
	}
	out := gone[0]
	for _, r := range gone { // one that is dead first
		if !s.ready(r) {
			out = r
		}
	}
	for _, r := range alive {
		if r.Placement == out.Placement {
			alive = slices.DeleteFunc(slices.Clone(alive), func(o poolv1.Replica) bool { return o.Placement == r.Placement })
			break
		}
	}
	if len(alive) < want-1 {
		return s.record, fmt.Sprintf("that on %s is to be placed again when the others are ready", list([]string{out.Node}))
	}
	at := s.choose(1, s.Replicas)
	if len(at) == 0 {
		return s.record,
			fmt.Sprintf("there is no node for that on %s: none more of the pool is Ready, has an internal address and "+
				"is selected", list([]string{out.Node}))
	}
	made := record{slices.Clone(s.Replicas), s.Cluster, s.Placements}
	made.Replicas[slices.Index(made.Replicas, out)] = s.placed(&made, at[0], true)
	return made, ""
}

// again places all replicas.
func (s *stand) anew(want int) (record, string) {
	at := s.choose(want, nil)
	if len(at) < want {
		if len(s.Replicas) == 0 {
			return s.record, fmt.Sprintf("%d nodes of the pool are Ready, have an internal address and are selected: want %d",
				len(at), want)
		}
		return s.record, fmt.Sprintf("%d nodes may run one: want %d", len(at), want)
	}
	made := record{Placements: s.Placements}
	for _, n := range at {
		made.Replicas = append(made.Replicas, s.placed(&made, n, false))
	}
	made.Cluster = made.Replicas[0].Placement
	return made, ""
}

// placed is a replica that comes to a node.
func (s *stand) placed(in *record, n *corev1.Node, joins bool) poolv1.Replica {
	in.Placements++
	url, _ := server(n)
	return poolv1.Replica{
		Node: n.Name, Server: url, Placement: fmt.Sprintf("%d-%.8s", in.Placements, s.Own.UID), Joins: joins,
	}
}

// remains reports whether a replica may stay where it is.
func (s *stand) remains(r poolv1.Replica) bool {
	n := s.node(r.Node)
	if n == nil || !selected(s.Own.Spec.Coordinator, n) {
		return false
	}
	url, _ := server(n)
	since := lost(n)
	return url == r.Server && (since.IsZero() || s.now.Sub(since) < replaceAfter(s.Own.Spec.Coordinator))
}

// choose are nodes for new replicas, n or fewer, beside those that there are. One is preferred on which no replica is
// that goes.
func (s *stand) choose(n int, beside []poolv1.Replica) []*corev1.Node {
	c := s.Own.Spec.Coordinator
	var able []*corev1.Node
	taken := map[string]int{}
	for i := range s.pods {
		taken[s.pods[i].Spec.NodeName] = 1
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if selected(c, n) && lost(n).IsZero() &&
			!slices.ContainsFunc(beside, func(r poolv1.Replica) bool { return r.Node == n.Name }) {
			able = append(able, n)
		}
	}
	slices.SortFunc(able, func(a, b *corev1.Node) int {
		return cmp.Or(
			cmp.Compare(taken[a.Name], taken[b.Name]),
			cmp.Compare(slices.Index(c.Nodes, a.Name), slices.Index(c.Nodes, b.Name)),
			cmp.Compare(lot(s.Name, a.Name), lot(s.Name, b.Name)), cmp.Compare(a.Name, b.Name),
		)
	})
	return able[:min(n, len(able))]
}
