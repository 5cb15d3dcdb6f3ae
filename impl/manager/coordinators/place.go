package coordinators

import (
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

const (
	// lostAfter is for how long a node may be lost, while others of its pool are heard, before its replica goes elsewhere,
	// if the Pool does not say.
	lostAfter = 5 * time.Minute
	lostLeast = 10 * time.Second
)

// replicas is how many there are to be.
func replicas(c *poolv1.Coordinator) int { return max(int(c.Replicas), 1) }

// replaceAfter is for how long a node is lost until its replica goes elsewhere.
func replaceAfter(c *poolv1.Coordinator) time.Duration {
	if d, err := time.ParseDuration(c.ReplaceAfter); err == nil { // the CRD sees to it
		return max(d, lostLeast)
	}
	return lostAfter
}

// selected reports whether the Pool lets a node run the coordinator.
func selected(c *poolv1.Coordinator, n *corev1.Node) bool {
	if _, ok := server(n); !ok || !n.DeletionTimestamp.IsZero() {
		return false
	}
	// somebody else runs one there.
	if is := n.Labels[contract.CoordinatorLabel]; is != "" && is != contract.ReplicaName(n.Name) {
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

// lot is the order in which nodes of a pool are chosen. It is another than that of leaders.
func lot(pool, node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("coordinator/" + pool + "/" + node))
	return h.Sum64()
}

// server is where the coordinator of a node is asked.
func server(n *corev1.Node) (string, bool) {
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); a.Type == corev1.NodeInternalIP && err == nil && !ip.IsUnspecified() &&
			!ip.IsMulticast() && !ip.IsLinkLocalUnicast() && ip.Zone() == "" {
			return "https://" + net.JoinHostPort(ip.Unmap().String(), strconv.Itoa(contract.CoordinatorPort)), true
		}
	}
	return "", false
}
