package commands

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// pageSize is how many objects are asked for at once.
const pageSize = 500

// Kinds of what is read, for Failed.
const (
	Nodes        = "Nodes"
	NodePools    = "NodePools"
	Pools        = "Pools"
	Leases       = "Leases"
	Manager      = "Deployment kube-system/weir-manager"
	Gate         = "Deployment kube-system/weir-gate"
	ManagerLease = "Lease kube-system/weir-manager"
	LeaderHubs   = "Services leader-hub-<pool>"
	Coordinators = "Pods of coordinators"
	Installs     = "Jobs that join nodes"
	APIServices  = "APIServices"
)

// View is what is seen of a cluster.
type View struct {
	Now          time.Time
	Nodes        []corev1.Node // sorted by name, as all here
	NodePools    []nodepool.NodePool
	Pools        []poolv1.Pool
	Leases       map[string]coordinationv1.Lease // of nodes
	Manager      *appsv1.Deployment              // nil: there is none
	Gate         *appsv1.Deployment              // nil: there is none
	ManagerLease *coordinationv1.Lease           // nil: there is none
	LeaderHubs   map[string]corev1.Service       // by pool
	Coordinators []corev1.Pod
	Installs     map[string]batchv1.Job // by node: Jobs of weir-manager by which it joins or leaves
	InstallPods  []corev1.Pod
	Aggregated   map[string]bool  // APIs that another server than kube-apiserver answers, as version.group
	Failed       map[string]error // why something could not be read
}

// Read looks at a cluster.
func (c *Cluster) Read(ctx context.Context) *View {
	v := &View{
		Now: c.Now(), Failed: map[string]error{}, Leases: map[string]coordinationv1.Lease{},
		LeaderHubs: map[string]corev1.Service{}, Installs: map[string]batchv1.Job{},
	}
	v.Nodes = list[corev1.Node](ctx, c, v, Nodes, &corev1.NodeList{})
	v.NodePools = list[nodepool.NodePool](ctx, c, v, NodePools, &nodepool.List{})
	v.Pools = list[poolv1.Pool](ctx, c, v, Pools, &poolv1.List{})
	for _, l := range list[coordinationv1.Lease](ctx, c, v, Leases, &coordinationv1.LeaseList{},
		client.InNamespace(contract.NodeLeaseNamespace)) {
		v.Leases[l.Name] = l
	}
	ours := []client.ListOption{
		client.InNamespace(contract.ManagerNamespace), client.MatchingLabels{contract.ManagedLabel: contract.ManagedBy},
	}
	for _, s := range list[corev1.Service](ctx, c, v, LeaderHubs, &corev1.ServiceList{}, ours...) {
		v.LeaderHubs[s.Labels[contract.NodePoolLabel]] = s
	}
	for _, p := range list[corev1.Pod](ctx, c, v, Coordinators, &corev1.PodList{}, ours...) {
		if p.Labels[contract.NameLabel] == contract.InstallerName {
			v.InstallPods = append(v.InstallPods, p)
		} else {
			v.Coordinators = append(v.Coordinators, p)
		}
	}
	for _, j := range list[batchv1.Job](ctx, c, v, Installs, &batchv1.JobList{},
		client.InNamespace(contract.ManagerNamespace), client.MatchingLabels(nodejob.InstallLabels())) {
		v.Installs[j.Annotations[contract.InstallNode]] = j
	}
	var err error
	if v.Aggregated, err = aggregated(ctx, c, pageSize); err != nil {
		v.Failed[APIServices] = err
	}
	v.Manager, v.Gate = get(ctx, c, v, Manager, "weir-manager", &appsv1.Deployment{}),
		get(ctx, c, v, Gate, "weir-gate", &appsv1.Deployment{})
	v.ManagerLease = get(ctx, c, v, ManagerLease, "weir-manager", &coordinationv1.Lease{})
	return v
}

// list reads all of a kind.
func list[T any](ctx context.Context, c *Cluster, v *View, kind string, into client.ObjectList,
	options ...client.ListOption) (all []T) {
	for more := ""; ; {
		next := append(slices.Clone(options), client.Limit(pageSize), client.Continue(more))
		if err := c.List(ctx, into, next...); err != nil {
			v.Failed[kind] = err
			return nil
		}
		_ = meta.EachListItem(into, func(o runtime.Object) error {
			if t, ok := any(o).(*T); ok {
				all = append(all, *t)
			}
			return nil
		})
		if more = into.GetContinue(); more == "" {
			return all
		}
	}
}

// get reads an object of a kind in weir-manager's namespace; nil: there is none.
func get[T client.Object](ctx context.Context, c *Cluster, v *View, kind, name string, into T) (none T) {
	switch err := c.Get(ctx, client.ObjectKey{Namespace: contract.ManagerNamespace, Name: name}, into); {
	case apierrors.IsNotFound(err):
		return none
	case err != nil:
		v.Failed[kind] = err
		return none
	}
	return into
}

// PoolNames are all pools that there are: by a NodePool, by a Pool, or by the label of a Node.
func (v *View) PoolNames() []string {
	all := map[string]bool{}
	for i := range v.NodePools {
		all[v.NodePools[i].Name] = true
	}
	for i := range v.Pools {
		all[v.Pools[i].Name] = true
	}
	for i := range v.Nodes {
		if pool := v.Nodes[i].Labels[contract.NodePoolLabel]; pool != "" {
			all[pool] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// NodePool is the one of a name; nil: there is none.
func (v *View) NodePool(name string) *nodepool.NodePool {
	if i := slices.IndexFunc(v.NodePools, func(p nodepool.NodePool) bool { return p.Name == name }); i >= 0 {
		return &v.NodePools[i]
	}
	return nil
}

// Pool is the one of a name; nil: there is none.
func (v *View) Pool(name string) *poolv1.Pool {
	if i := slices.IndexFunc(v.Pools, func(p poolv1.Pool) bool { return p.Name == name }); i >= 0 {
		return &v.Pools[i]
	}
	return nil
}

// Members are the nodes of a pool.
func (v *View) Members(pool string) (all []*corev1.Node) {
	for i := range v.Nodes {
		if v.Nodes[i].Labels[contract.NodePoolLabel] == pool {
			all = append(all, &v.Nodes[i])
		}
	}
	return all
}

// Failures are the ways that fail of a pool, as its hubs found it; see poolv1.Status.Failures.
func (v *View) Failures(pool string) (all []poolv1.Failure, more int) {
	p := v.Pool(pool)
	if p == nil {
		return nil, 0
	}
	var nodes []corev1.Node
	for _, n := range v.Members(pool) {
		nodes = append(nodes, *n)
	}
	return p.Status.Failures(nodes, v.Now)
}

// Condition is one of a Node; nil: it has none of the type.
func Condition(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// Heartbeat is how a Node is heard.
type Heartbeat struct {
	Age       time.Duration // negative: it never was
	Delegated bool          // the leader of its pool speaks for it
	Late      bool          // it is older than the Lease counts
}

// Heartbeat tells how a Node is heard.
func (v *View) Heartbeat(node string) Heartbeat {
	l, ok := v.Leases[node]
	if !ok || l.Spec.RenewTime == nil {
		return Heartbeat{Age: -1, Late: true}
	}
	h := Heartbeat{
		Age:       max(v.Now.Sub(l.Spec.RenewTime.Time), 0),
		Delegated: l.Annotations[contract.DelegateHeartbeat] == contract.Delegated,
	}
	life := 40 * time.Second
	if l.Spec.LeaseDurationSeconds != nil {
		life = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	h.Late = h.Age > life
	return h
}

// ConditionOf is one of NodePools and Pools; nil: there is none of the type.
func ConditionOf(all []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(all, kind)
}
