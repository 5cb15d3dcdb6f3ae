package pools

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

// wants is how many leader hubs a pool asks for.
func wants(s nodepool.Spec) int {
	if !s.EnableLeaderElection || !s.InterConnectivity {
		return 0
	}
	return max(1, int(s.LeaderReplicas))
}

// elect says who leads a pool of these nodes. A hub that leads already goes on if it may, and while the pool is silent.
func elect(p *nodepool.NodePool, nodes []corev1.Node, silent bool) []nodepool.Leader {
	n := wants(p.Spec)
	if n == 0 {
		return nil
	}
	if silent {
		return remain(p.Status.LeaderEndpoints, nodes)
	}
	able := map[string]nodepool.Leader{}
	for i := range nodes {
		node := &nodes[i]
		if a, ok := address(node); ok && mayLead(p.Spec, node) {
			able[node.Name] = nodepool.Leader{NodeName: node.Name, Address: a}
		}
	}
	var leaders []nodepool.Leader
	for _, was := range p.Status.LeaderEndpoints {
		if l, ok := able[was.NodeName]; ok && len(leaders) < n {
			leaders = append(leaders, l)
			delete(able, was.NodeName)
		}
	}
	rest := make([]nodepool.Leader, 0, len(able))
	for _, l := range able {
		rest = append(rest, l)
	}
	slices.SortFunc(rest, func(a, b nodepool.Leader) int {
		return cmp.Or(cmp.Compare(lot(p.Name, a.NodeName), lot(p.Name, b.NodeName)), cmp.Compare(a.NodeName, b.NodeName))
	})
	leaders = append(leaders, rest[:min(len(rest), n-len(leaders))]...)
	sortLeaders(leaders)
	return leaders
}

// remain are the leaders of before whose Nodes exist.
func remain(was []nodepool.Leader, nodes []corev1.Node) (still []nodepool.Leader) {
	for _, l := range was {
		if slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == l.NodeName }) {
			still = append(still, l)
		}
	}
	sortLeaders(still)
	return still
}

func sortLeaders(all []nodepool.Leader) {
	slices.SortFunc(all, func(a, b nodepool.Leader) int { return cmp.Compare(a.NodeName, b.NodeName) })
}

// mayLead reports whether a node may lead its pool.
func mayLead(s nodepool.Spec, n *corev1.Node) bool {
	if !n.DeletionTimestamp.IsZero() || !is(n, corev1.NodeReady) || is(n, contract.CutOffCondition) {
		return false
	}
	return s.LeaderElectionStrategy != nodepool.Mark ||
		labels.SelectorFromSet(s.LeaderNodeLabelSelector).Matches(labels.Set(n.Labels))
}

// is reports whether a condition of a node is True.
func is(n *corev1.Node, t corev1.NodeConditionType) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// address is the first internal IP address of a node that others can connect to.
func address(n *corev1.Node) (string, bool) {
	for _, a := range n.Status.Addresses {
		if ip, ok := reachable(a.Address); ok && a.Type == corev1.NodeInternalIP {
			return ip.String(), true
		}
	}
	return "", false
}

// reachable reads an address that others can connect to. kube-apiserver takes no other one in an EndpointSlice, and
// would refuse all leaders of the pool for it.
func reachable(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	ip = ip.Unmap()
	return ip, err == nil && ip.Zone() == "" && !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsMulticast() &&
		!ip.IsLinkLocalUnicast()
}

// lot is the order in which nodes of a pool are chosen.
func lot(pool, node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(pool + "/" + node))
	return h.Sum64()
}
