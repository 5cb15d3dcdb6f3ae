package pools

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

// AttributeKeeper keeps one Node after another. A request is the name of one.
type AttributeKeeper struct {
	Client client.Client
	Clock  clock.PassiveClock
	Aside  func(ctx context.Context) (bool, error) // yurt-manager runs: it does this
}

// Reconcile implements reconcile.Reconciler.
func (k *AttributeKeeper) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var n corev1.Node
	if err := k.Client.Get(ctx, r.NamespacedName, &n); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pool := n.Labels[contract.NodePoolLabel]
	if pool == "" && n.Annotations[contract.PoolAttributes] == "" {
		return reconcile.Result{}, nil
	}
	if aside, err := k.Aside(ctx); err != nil || aside {
		return reconcile.Result{RequeueAfter: time.Minute}, err
	}
	var p nodepool.NodePool
	if pool != "" {
		if err := k.Client.Get(ctx, types.NamespacedName{Name: pool}, &p); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
	}
	var want Attributes
	if p.Name != "" && p.DeletionTimestamp.IsZero() {
		want, _ = AttributesOf(p.Spec)
	}
	patch, err := change(&n, want, metav1.NewTime(k.Clock.Now()))
	if err != nil || patch == nil {
		return reconcile.Result{}, err
	}
	err = k.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}},
		client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: lag}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("labels, annotations and taints of pool %s on node %s: %w", pool, n.Name, err)
	}
	return reconcile.Result{}, nil
}
