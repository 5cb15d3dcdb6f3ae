package jobs

import (
	"context"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// Config is what leads nodes to their hubs. All is needed.
type Config struct {
	Gate    *manifests.Gate // until Jobs, NodePools and Pools may be read
	Clock   clock.WithTicker
	Images  manifests.Watcher // has the ConfigMap that says which image joins nodes
	Metrics *Metrics
	Log     *slog.Logger
}

// Add lets the manager begin Jobs on nodes while it leads, from when it may and NodePools and Pools are defined.
func Add(m ctrl.Manager, c Config) error {
	return m.Add(ctrl.RunnableFunc(func(ctx context.Context) error {
		r := m.GetAPIReader()
		readable := manifests.Each(manifests.Listed(r, &nodepool.List{}), manifests.Listed(r, &poolv1.List{}),
			manifests.Listed(r, &batchv1.JobList{}, client.InNamespace(contract.ManagerNamespace)))
		if !c.Gate.Granted(ctx, "Jobs that join nodes", readable) {
			return nil
		}
		return run(ctx, m, c)
	}))
}

// run runs the controller until the context ends.
func run(ctx context.Context, m ctrl.Manager, c Config) error {
	k := &keeper{
		client: m.GetClient(), reader: m.GetAPIReader(), images: c.Images, clock: c.Clock,
		events: m.GetEventRecorder("weir-manager"), metrics: c.Metrics, log: c.Log,
	}
	return manifests.Control(ctx, "installs", k, 1,
		source.Kind(m.GetCache(), &corev1.Node{}, changes(alike)),
		source.Kind(m.GetCache(), &batchv1.Job{}, changes(func(_, _ *batchv1.Job) bool { return false })),
		source.Kind(m.GetCache(), &corev1.Pod{},
			changes(func(_, b *corev1.Pod) bool { return b.Labels[contract.NameLabel] != contract.InstallerName })),
		source.Kind(m.GetCache(), &corev1.Service{}, changes(func(_, _ *corev1.Service) bool { return true })),
		source.Kind(m.GetCache(), &nodepool.NodePool{},
			changes(func(a, b *nodepool.NodePool) bool { return a.Generation == b.Generation })),
		source.Kind(m.GetCache(), &poolv1.Pool{},
			changes(func(a, b *poolv1.Pool) bool { return a.Generation == b.Generation })),
		source.Func(func(_ context.Context, q queue) error {
			return c.Images.Follow(imagesMap(), func(client.Object) { q.Add(reconcile.Request{}) })
		}))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// changes asks for a look when an object comes, goes or is not like before.
func changes[T client.Object](alike func(a, b T) bool) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], q queue) { q.Add(reconcile.Request{}) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], q queue) { q.Add(reconcile.Request{}) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q queue) {
			if !alike(e.ObjectOld, e.ObjectNew) {
				q.Add(reconcile.Request{})
			}
		},
	}
}

// alike reports whether the same follows from two states of a Node.
func alike(a, b *corev1.Node) bool {
	return a.Labels[contract.NodePoolLabel] == b.Labels[contract.NodePoolLabel] && able(a) == able(b) &&
		condition(a, contract.JoinedCondition) == condition(b, contract.JoinedCondition)
}
