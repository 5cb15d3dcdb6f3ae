package coordinators

import (
	"cmp"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-edge/weir/impl/contract"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// lostAfter is for how long a node may be lost, while others of its pool are heard, before the coordinator goes elsewhere.
const lostAfter = 5 * time.Minute

// selected tells whether the Pool lets a node run the coordinator.
func selected(c *poolv1.Coordinator, n *corev1.Node) bool {
	if _, ok := server(n); !ok || !n.DeletionTimestamp.IsZero() {
		return false
	}
	if len(c.Nodes) > 0 {
		return slices.Contains(c.Nodes, n.Name)
	}
	return labels.SelectorFromSet(c.NodeSelector).Matches(labels.Set(n.Labels))
}

// lost tells since when the cloud does not hear a node, or its kubelet says that it is not ready; zero: it is well.
func lost(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// remains tells whether the coordinator may stay on a node.
func remains(c *poolv1.Coordinator, n *corev1.Node, silent bool, now time.Time) bool {
	since := lost(n)
	return selected(c, n) && (silent || since.IsZero() || now.Sub(since) < lostAfter)
}

// choose is the node for a new coordinator; nil: there is none.
func choose(own *poolv1.Pool, nodes []corev1.Node) *corev1.Node {
	c := own.Spec.Coordinator
	var able []*corev1.Node
	for i := range nodes {
		if n := &nodes[i]; selected(c, n) && lost(n).IsZero() {
			able = append(able, n)
		}
	}
	if len(able) == 0 {
		return nil
	}
	return slices.MinFunc(able, func(a, b *corev1.Node) int {
		return cmp.Or(
			cmp.Compare(slices.Index(c.Nodes, a.Name), slices.Index(c.Nodes, b.Name)), cmp.Compare(lot(own.Name, a.Name), lot(own.Name, b.Name)), cmp.Compare(a.Name, b.Name),
		)
	})
}

// lot is the order in which nodes of a pool are chosen. It is another than that of leaders.
func lot(pool, node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("coordinator/" + pool + "/" + node))
	return h.Sum64()
}

// server is where the coordinator of a node is asked.
func server(n *corev1.Node) (string, bool) {
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); a.Type == corev1.NodeInternalIP && err == nil && !ip.IsUnspecified() && !ip.IsMulticast() && ip.Zone() == "" {
			return "https://" + net.JoinHostPort(ip.Unmap().String(), strconv.Itoa(contract.CoordinatorPort)), true
		}
	}
	return "", false
}
