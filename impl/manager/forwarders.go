package manager

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/renewals"
)

// forwarders keeps, for each pool that has nodes, a Role and a RoleBinding that let each of them that may lead, when it
// does, update the Leases of all. Where no Node of the pool has the label of leaders, each may. A request is the name
// of a pool.
type forwarders struct {
	client client.Client
}

// add runs it while the manager leads: for each pool that a node joins or leaves, and each Role or RoleBinding that
// somebody changed.
func (f *forwarders) add(m ctrl.Manager) error {
	return reconciles(m, "forwarders", f, 1,
		source.Kind(m.GetCache(), &corev1.Node{}, membership()),
		source.Kind(m.GetCache(), &rbacv1.Role{},
			handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, r *rbacv1.Role) []reconcile.Request {
				return poolOf(r.Name)
			})),
		source.Kind(m.GetCache(), &rbacv1.RoleBinding{},
			handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, r *rbacv1.RoleBinding) []reconcile.Request {
				return poolOf(r.Name)
			})),
	)
}

// gather is for how long nodes that join a pool are waited for: what names all nodes of a pool is written once for
// them.
const gather = 500 * time.Millisecond

// membership asks for the pools that a change of a Node concerns: none, mostly. Addresses are held of coordinators
// only. A node that leaves a pool has left it at once.
func membership() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	after := func(q queue, n *corev1.Node, wait time.Duration) {
		if pool := n.Labels[contract.NodePoolLabel]; pool != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}}, wait)
		}
	}
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q queue) { after(q, e.Object, gather) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], q queue) { after(q, e.Object, 0) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q queue) {
			if !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) || e.ObjectOld.UID != e.ObjectNew.UID ||
				!slices.Equal(e.ObjectOld.Status.Addresses, e.ObjectNew.Status.Addresses) ||
				holds(e.ObjectOld) != holds(e.ObjectNew) {
				if was, is := e.ObjectOld, e.ObjectNew; was.UID != is.UID ||
					was.Labels[contract.NodePoolLabel] != is.Labels[contract.NodePoolLabel] {
					after(q, was, 0)
				}
				after(q, e.ObjectNew, gather)
			}
		},
	}
}

// holds is what the hub of a node tells.
func holds(n *corev1.Node) string { return n.Annotations[contract.HoldsAnnotation] }

// poolOf is the pool whose Role or RoleBinding this is.
func poolOf(name string) []reconcile.Request {
	if len(name) <= len(contract.ForwarderRolePrefix) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name[len(contract.ForwarderRolePrefix):]}}}
}

// Reconcile implements reconcile.Reconciler.
func (f *forwarders) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var nodes corev1.NodeList
	if err := f.client.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: r.Name}); err != nil {
		return reconcile.Result{}, err
	}
	err := f.keep(ctx, r.Name, nodes.Items)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) { // the cache will hear of it
		return reconcile.Result{RequeueAfter: lag}, nil
	}
	return reconcile.Result{}, err
}

func (f *forwarders) keep(ctx context.Context, pool string, nodes []corev1.Node) error {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	meta := metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: contract.ForwarderRolePrefix + pool}
	if len(names) == 0 {
		return errors.Join(
			f.remove(ctx, &rbacv1.RoleBinding{ObjectMeta: meta}), f.remove(ctx, &rbacv1.Role{ObjectMeta: meta}))
	}
	return renewals.Grant(ctx, f.client, meta, "the forwarder of pool "+pool, rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: names,
		Verbs: []string{"get", "update", "patch"},
	}, renewals.Leaders(pool, nodes))
}

func (f *forwarders) remove(ctx context.Context, o client.Object) error {
	err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o)
	if err == nil {
		err = f.client.Delete(ctx, o)
	}
	return client.IgnoreNotFound(err)
}
