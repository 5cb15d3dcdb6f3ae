package pools

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/coordinators"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func enqueue(q queue, pool string) {
	if pool != "" {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
	}
}

// owned asks for the pool whose object was changed.
func owned[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o T) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetLabels()[contract.NodePoolLabel]}}}
	})
}

// members asks for the pools that a change of a Node concerns. Most changes of a Node concern none.
func members() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q queue) {
			enqueue(q, e.Object.Labels[contract.NodePoolLabel])
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], q queue) {
			enqueue(q, e.Object.Labels[contract.NodePoolLabel])
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q queue) {
			if !alike(e.ObjectOld, e.ObjectNew) {
				enqueue(q, e.ObjectOld.Labels[contract.NodePoolLabel])
				enqueue(q, e.ObjectNew.Labels[contract.NodePoolLabel])
			}
		},
	}
}

// alike reports whether two states of a Node say the same of its pool.
func alike(a, b *corev1.Node) bool {
	saysA, holdsA := certified(a)
	saysB, holdsB := certified(b)
	return saysA == saysB && holdsA == holdsB && a.UID == b.UID && maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.Status.Addresses, b.Status.Addresses) &&
		a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		is(a, corev1.NodeReady) == is(b, corev1.NodeReady) &&
		is(a, contract.CutOffCondition) == is(b, contract.CutOffCondition)
}

// imageless asks for the pools that name no image of their coordinator, which weir-manager is to run.
func imageless(ctx context.Context, c client.Reader, q queue) {
	var all poolv1.List
	if c.List(ctx, &all) != nil { // the cache is ending, or begins: then each pool is asked for anyway
		return
	}
	for i := range all.Items {
		if o := &all.Items[i]; coordinators.Runs(o) && o.Spec.Coordinator.Image == "" {
			enqueue(q, o.Name)
		}
	}
}

// everyPool asks for all pools that are told something.
func everyPool(ctx context.Context, c client.Reader, q queue) {
	var all nodepool.List
	if c.List(ctx, &all) != nil { // as in imageless
		return
	}
	for i := range all.Items {
		enqueue(q, all.Items[i].Name)
	}
}

// bearers asks for Nodes whose labels, annotations or taints are others than before.
func bearers() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q queue) { enqueue(q, e.Object.Name) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q queue) {
			was, is := e.ObjectOld, e.ObjectNew
			if !maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations) ||
				!equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints) {
				enqueue(q, is.Name)
			}
		},
	}
}

// givers asks for the Nodes of a NodePool whose spec is another than before, or that goes.
func givers(c client.Reader) handler.TypedEventHandler[*nodepool.NodePool, reconcile.Request] {
	all := func(ctx context.Context, q queue, pool string) {
		var nodes corev1.NodeList
		if c.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: pool}) != nil { // the cache is ending
			return
		}
		for i := range nodes.Items {
			enqueue(q, nodes.Items[i].Name)
		}
	}
	return handler.TypedFuncs[*nodepool.NodePool, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*nodepool.NodePool], q queue) {
			all(ctx, q, e.Object.Name)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*nodepool.NodePool], q queue) {
			all(ctx, q, e.Object.Name)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*nodepool.NodePool], q queue) {
			if e.ObjectOld.Generation != e.ObjectNew.Generation ||
				e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero() {
				all(ctx, q, e.ObjectNew.Name)
			}
		},
	}
}
