package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	_ "time/tzdata" // the image of weir-manager has no time zones of its own

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodejob"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// preloadsRecheck is how often it is looked whether hours begin or end.
const preloadsRecheck = 30 * time.Second

// PreloadsConfig is what lets Jobs run. All is needed.
type PreloadsConfig struct {
	Gate  *manifests.Gate // until Jobs and Pools may be read
	Clock clock.WithTicker
	Log   *slog.Logger
}

// AddPreloads lets Jobs run while the manager leads, from when it may.
func AddPreloads(m ctrl.Manager, c PreloadsConfig) error {
	return m.Add(ctrl.RunnableFunc(func(ctx context.Context) error {
		r := m.GetAPIReader()
		readable := manifests.Each(manifests.Listed(r, &poolv1.List{}), // what is often not there yet is asked first
			manifests.Listed(r, &batchv1.JobList{}, client.InNamespace(contract.ManagerNamespace)))
		if !c.Gate.Granted(ctx, "Jobs that pull images", readable) {
			return nil
		}
		return runPreloads(ctx, m, c)
	}))
}

// runPreloads runs the controller until the context ends.
func runPreloads(ctx context.Context, m ctrl.Manager, c PreloadsConfig) error {
	k := &preloads{client: m.GetClient(), clock: c.Clock, log: c.Log}
	return manifests.Control(ctx, "preloads", k, 1,
		source.Kind(m.GetCache(), &batchv1.Job{}, preloadsChanges[*batchv1.Job]()),
		source.Kind(m.GetCache(), &poolv1.Pool{}, preloadsChanges[*poolv1.Pool]()))
}

type preloadsQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// preloadsChanges asks for a look when a Job of images or a Pool is another than before.
func preloadsChanges[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	look := func(q preloadsQueue, o T) {
		if name := o.GetLabels()[contract.NameLabel]; name == "" || name == contract.PreloadName {
			q.Add(reconcile.Request{})
		}
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q preloadsQueue) { look(q, e.Object) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q preloadsQueue) { look(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q preloadsQueue) { look(q, e.ObjectNew) },
	}
}

// preloads looks at all Jobs at once: which one runs depends on the others.
type preloads struct {
	client client.Client
	clock  clock.PassiveClock
	log    *slog.Logger

	told map[string]string // what was said of the hours of a pool
}

// Reconcile implements reconcile.Reconciler. A cache that is late lets two run, or asks for what is so already.
func (k *preloads) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var all batchv1.JobList
	var pools poolv1.List
	var nodes corev1.NodeList
	if err := errors.Join(
		k.client.List(ctx, &all, client.InNamespace(contract.ManagerNamespace),
			client.MatchingLabels(nodejob.PreloadLabels())),
		k.client.List(ctx, &pools), k.client.List(ctx, &nodes),
	); err != nil || len(all.Items) == 0 {
		return reconcile.Result{}, err
	}
	closed, stands := k.closed(pools.Items), map[string]nodejob.NodeState{}
	for i := range nodes.Items {
		stands[nodes.Items[i].Name] = nodesStand(&nodes.Items[i])
	}
	var failed []error
	for _, c := range nodejob.PlanPreloads(all.Items, func(pool string) bool { return !closed[pool] },
		func(node string) nodejob.NodeState { return stands[node] }) {
		failed = append(failed, k.change(ctx, c))
	}
	return reconcile.Result{RequeueAfter: preloadsRecheck}, errors.Join(failed...)
}

// closed are the pools that may not pull now.
func (k *preloads) closed(pools []poolv1.Pool) map[string]bool {
	closed, told := map[string]bool{}, map[string]string{}
	for i := range pools {
		p := &pools[i]
		if p.Spec.Images == nil {
			continue
		}
		open, err := nodejob.WindowOpen(p.Spec.Images.Window, k.clock.Now())
		closed[p.Name] = !open
		if err != nil {
			if told[p.Name] = err.Error(); k.told[p.Name] != told[p.Name] {
				k.log.Warn("hours of a pool do not count", "pool", p.Name, "why", err)
			}
		}
	}
	k.told = told
	return closed
}

func (k *preloads) change(ctx context.Context, c nodejob.PreloadChange) error {
	was := c.Job.DeepCopy()
	c.Job.Spec.Suspend = ptr.To(c.Suspend)
	err := k.client.Patch(ctx, c.Job, client.MergeFrom(was))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("job %s of pool %s: %w", c.Job.Name, c.Job.Labels[contract.NodePoolLabel], err)
	}
	k.log.Info("a Job that pulls an image", "job", c.Job.Name, "node", nodejob.NodeOf(c.Job), "runs", !c.Suspend)
	return nil
}

// nodesStand is how a node stands.
func nodesStand(n *corev1.Node) nodejob.NodeState {
	ready := false
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady:
			ready = c.Status == corev1.ConditionTrue
		case c.Type == contract.CutOffCondition && c.Status == corev1.ConditionTrue:
			return nodejob.NodeAway
		}
	}
	if ready && n.DeletionTimestamp.IsZero() {
		return nodejob.NodeAble
	}
	return nodejob.NodeAway
}
