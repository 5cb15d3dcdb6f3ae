package coordinators

import (
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// Labels of the Pods here.
const (
	// placementLabel names the stay of a replica on its node.
	placementLabel = "weir.dev/placement"
	// beforeAnnotation is the container that ran when the Pod got another image.
	beforeAnnotation = "weir.dev/before-image"
)

// soon is when the cache has heard of what was written.
const soon = 200 * time.Millisecond

// record is what the status of a Pool keeps of its coordinator: where it is to be, whether it is there or not.
type record struct {
	Replicas   []poolv1.Replica
	Cluster    string
	Placements int64
}

func recorded(own *poolv1.Pool) record {
	return record{slices.Clone(own.Status.Replicas), own.Status.Cluster, own.Status.Placements}
}

// same reports whether two records place the same.
func (r record) same(o record) bool {
	return r.Placements == o.Placements && r.Cluster == o.Cluster && slices.Equal(r.Replicas, o.Replicas)
}

// Pool is what is known of a pool.
type Pool struct {
	Name   string
	Own    *poolv1.Pool // nil: it is to have no coordinator
	Nodes  []corev1.Node
	Silent bool // no node of it is heard
}

// node is one of the pool; nil: it is not of the pool.
func (p Pool) node(name string) *corev1.Node {
	for i := range p.Nodes {
		if p.Nodes[i].Name == name {
			return &p.Nodes[i]
		}
	}
	return nil
}

// stand is how a coordinator stands.
type stand struct {
	Pool
	record
	pods    []corev1.Pod
	image   string                        // that replicas are to run; "": there is none
	secrets []corev1.LocalObjectReference // by which a new one is pulled
	unread  error                         // which these are: no new one runs, and those that run stay
	now     time.Time
}

// pod is the one of a replica; nil: there is none, or it is about to go.
func (s *stand) pod(r poolv1.Replica) *corev1.Pod {
	for i := range s.pods {
		if o := &s.pods[i]; o.Spec.NodeName == r.Node && o.Labels[placementLabel] == r.Placement &&
			o.DeletionTimestamp.IsZero() {
			return o
		}
	}
	return nil
}

// recorded reports whether a Pod is one of those that are to be.
func (s *stand) recorded(o *corev1.Pod) bool {
	return slices.ContainsFunc(s.Replicas, func(r poolv1.Replica) bool {
		return r.Node == o.Spec.NodeName && r.Placement == o.Labels[placementLabel]
	})
}

// ready reports whether the kubelet has seen a replica serve.
func (s *stand) ready(r poolv1.Replica) bool { return serving(s.pod(r)) }

// serves reports whether enough of the replicas are ready for hubs to use them.
func (s *stand) serves() bool {
	n := 0
	for _, r := range s.Replicas {
		if s.ready(r) {
			n++
		}
	}
	return n > 0 && 2*n > len(s.Replicas)
}

// told is what hubs are told: those that serve, and those that did and are to serve again. Until a majority of others
// serves, what they know.
func (s *stand) told() (all []string) {
	knows := func(url string) bool { return slices.Contains(s.Own.Status.Coordinators, url) }
	if s.serves() {
		for _, r := range s.Replicas {
			if s.ready(r) || s.pod(r) != nil && knows(r.Server) {
				all = append(all, r.Server)
			}
		}
		return all
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		url, ok := server(n)
		if ok && knows(url) &&
			slices.ContainsFunc(s.pods, func(o corev1.Pod) bool {
				return o.Spec.NodeName == n.Name && o.DeletionTimestamp.IsZero()
			}) {
			all = append(all, url)
		}
	}
	return all
}

// members are those that are to be, and those that hubs are still told of.
func (s *stand) members() string {
	var all []string
	for _, r := range s.Replicas {
		all = append(all, member(r.Placement, r.Node, r.Server))
	}
	told := s.told()
	for i := range s.pods {
		o := &s.pods[i]
		n := s.node(o.Spec.NodeName)
		if n == nil || s.recorded(o) ||
			slices.ContainsFunc(s.Replicas, func(r poolv1.Replica) bool { return r.Node == n.Name }) {
			continue
		}
		if url, ok := server(n); ok && slices.Contains(told, url) && o.Labels[placementLabel] != "" {
			all = append(all, member(o.Labels[placementLabel], n.Name, url))
		}
	}
	return joined(all)
}

// member is the form of a replica in contract.LeaderHubReplicas.
func member(placement, node, server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return placement + "/" + node + "/" + u.Hostname()
}

func joined(all []string) string {
	slices.Sort(all)
	return strings.Join(all, ",")
}

// list names nodes.
func list(nodes []string) string {
	if len(nodes) == 1 {
		return "node " + nodes[0]
	}
	return "nodes " + strings.Join(nodes, ", ")
}

// inTheWay reports whether a Pod that goes keeps a replica from its node, and hubs do without it: others of those that
// they know serve.
func (s *stand) inTheWay(o *corev1.Pod) bool {
	if !slices.ContainsFunc(s.Replicas, func(r poolv1.Replica) bool { return r.Node == o.Spec.NodeName }) {
		return false
	}
	others := 0
	for i := range s.pods {
		if other := &s.pods[i]; other.UID != o.UID && serving(other) {
			others++
		}
	}
	return others > 1 || s.serves()
}

// serving reports whether the kubelet has seen a coordinator serve, with the image that it is to have.
func serving(o *corev1.Pod) bool {
	if o == nil || !o.DeletionTimestamp.IsZero() {
		return false
	}
	// the kubelet has not started the other image yet.
	if before := o.Annotations[beforeAnnotation]; before != "" && container(o) == before {
		return false
	}
	return slices.ContainsFunc(o.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// container is that of a coordinator, as its kubelet tells; "": it does not.
func container(o *corev1.Pod) string {
	if len(o.Status.ContainerStatuses) == 0 {
		return ""
	}
	return o.Status.ContainerStatuses[0].ContainerID
}
