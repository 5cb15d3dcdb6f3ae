package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/manager/pools"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

// ear hears what the cluster says.
type ear struct {
	cache   cache.Cache
	board   *board
	metrics *metrics
	watches []toolscache.ResourceEventHandlerRegistration
}

// heardAll reports whether everything that was there at the start has reached the board.
func (e *ear) heardAll() bool {
	return !slices.ContainsFunc(e.watches,
		func(r toolscache.ResourceEventHandlerRegistration) bool { return !r.HasSynced() })
}

// listen feeds the board with Nodes and Leases of nodes from the cache's watches. Handlers run one at a time for each.
func (e *ear) listen(ctx context.Context) error {
	for _, w := range []struct {
		what    string
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{"nodes", &corev1.Node{}, e.nodeHandler()},
		{"leases of nodes", &coordinationv1.Lease{}, e.leaseHandler()},
	} {
		informer, err := e.cache.GetInformer(ctx, w.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", w.what, err)
		}
		registration, err := informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("watch %s: %w", w.what, err)
		}
		e.watches = append(e.watches, registration)
	}
	return nil
}

func (e *ear) nodeHandler() toolscache.ResourceEventHandler {
	set := func(o any) {
		n, ok := o.(*corev1.Node)
		if !ok {
			return
		}
		facts := factsOf(n)
		e.board.tell(func(now time.Time, v *verdict.Machine) { v.SetNode(now, n.Name, facts) })
		e.metrics.hubs.SetNode(n.Name, facts.Pool)
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				e.board.tell(func(_ time.Time, v *verdict.Machine) { v.RemoveNode(name) })
				e.metrics.hubs.Forget(name)
			}
		},
	}
}

// leaseHandler takes changes of renewTime for heartbeats. A Lease that is there at the start has not changed; one that
// is new has. What the hub of the node tells of itself comes with them.
func (e *ear) leaseHandler() toolscache.ResourceEventHandler {
	highest := map[string]time.Time{} // stock Kubernetes counts only what is later than any renewTime before
	beat := func(l *coordinationv1.Lease) {
		delegated := l.Annotations[contract.DelegateHeartbeat] == contract.Delegated
		grew := renewed(l).After(highest[l.Name])
		if grew {
			highest[l.Name] = renewed(l)
		}
		e.metrics.heartbeats.Inc()
		e.board.tell(func(now time.Time, v *verdict.Machine) { v.Heartbeat(now, l.Name, delegated, grew) })
	}
	tells := func(l *coordinationv1.Lease) {
		e.metrics.hubs.Hear(l.Name, l.Annotations[contract.DigestAnnotation])
		e.metrics.hubs.HearReads(l.Name, l.Annotations[contract.ReadsAnnotation])
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			l, ok := o.(*coordinationv1.Lease)
			if !ok {
				return
			}
			if tells(l); initial {
				highest[l.Name] = renewed(l)
			} else {
				beat(l)
			}
		},
		UpdateFunc: func(old, o any) {
			before, ok := old.(*coordinationv1.Lease)
			l, also := o.(*coordinationv1.Lease)
			if !ok || !also {
				return
			}
			if tells(l); !renewed(l).Equal(renewed(before)) {
				beat(l)
			}
		},
		DeleteFunc: func(o any) {
			if l, ok := o.(*coordinationv1.Lease); ok {
				delete(highest, l.Name)
				e.metrics.hubs.Hush(l.Name)
			}
		},
	}
}

func renewed(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// factsOf reads what the verdict needs from a Node.
func factsOf(n *corev1.Node) verdict.Facts {
	f := verdict.Facts{Pool: n.Labels[contract.NodePoolLabel], Unreachable: unreachable(n)}
	if n.Annotations[contract.BindingAnnotation] == "true" || n.Annotations[contract.AutonomyAnnotation] == "true" {
		f.Bound = true
	} else if s := strings.TrimSpace(n.Annotations[contract.AutonomyDurationAnnotation]); s != "" {
		if s == "0" {
			s = "0s"
		}
		if d, err := time.ParseDuration(s); err == nil && d >= 0 {
			f.Bound, f.BoundFor = true, d
		}
	}
	return f
}

// unreachable reports whether the cloud holds a node for lost, and not because its kubelet said that it is not ready.
func unreachable(n *corev1.Node) bool {
	ready := conditionOf(n, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionUnknown ||
		taintOf(n, corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute) != nil
}

func conditionOf(n *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == t {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

func taintOf(n *corev1.Node, key string, effect corev1.TaintEffect) *corev1.Taint {
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; t.Key == key && t.Effect == effect {
			return t
		}
	}
	return nil
}

// What the node itself may make as long as it likes, a megabyte of each, is held so far only.
const (
	maxAddresses = 64
	maxMessage   = 1 << 10 // of a condition
)

// trimNode leaves of a Node what is read here: a cluster of thousands has megabytes of images and addresses.
func trimNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	slim := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion,
		DeletionTimestamp: n.DeletionTimestamp, Finalizers: n.Finalizers,
	}}
	record := n.Annotations[contract.PoolAttributes]
	slim.Annotations = only(n.Annotations,
		append(pools.PutAnnotations(record), contract.BindingAnnotation, contract.AutonomyAnnotation,
			contract.AutonomyDurationAnnotation, contract.PoolAttributes, contract.HoldsAnnotation)...)
	slim.Spec.Taints = n.Spec.Taints
	// its labels say whether it may lead the pool, its addresses where.
	if n.Labels[contract.NodePoolLabel] != "" || record != "" {
		slim.Labels, slim.Status.Addresses = n.Labels,
			slices.Clone(n.Status.Addresses[:min(len(n.Status.Addresses), maxAddresses)])
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady || c.Type == contract.CutOffCondition || c.Type == contract.CertificatesCondition ||
			c.Type == contract.JoinedCondition {
			c.Message = strings.Clone(c.Message[:min(len(c.Message), maxMessage)])
			slim.Status.Conditions = append(slim.Status.Conditions, c)
		}
	}
	return slim, nil
}

// trimLease leaves of a Lease its name, renewTime and the annotations of hubs, and what a renewal needs to know.
func trimLease(o any) (any, error) {
	l, ok := o.(*coordinationv1.Lease)
	if !ok {
		return o, nil
	}
	slim := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.Namespace, Name: l.Name, ResourceVersion: l.ResourceVersion,
			Annotations: only(l.Annotations, contract.DelegateHeartbeat, contract.DigestAnnotation, contract.ReadsAnnotation,
				contract.AnchorAnnotation),
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: l.Spec.RenewTime},
	}
	if lease.Managed(l) {
		slim.ManagedFields = l.ManagedFields
	}
	return slim, nil
}

func only(m map[string]string, keys ...string) map[string]string {
	var out map[string]string
	for _, k := range keys {
		if v, ok := m[k]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
