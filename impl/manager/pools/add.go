package pools

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/manager/coordinators"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/pki"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// Config is what keeps NodePools. All is needed, but for what says something else.
type Config struct {
	// Authority signs what a pool is told about itself; nil without an error: the pool has none. Nil: nobody signs, and no
	// hub believes what it is told.
	Authority func(ctx context.Context, pool string) (*pki.Succession, error)
	// Keys asks for the pools whose authority is another one, or whose hubs gave something back, and calls changed before.
	// Nil with Authority.
	Keys func(changed func(pool string)) source.Source

	// WeirGate is where weir-gate is, as each pool is told. Its zero value: there is none.
	WeirGate func() directory.Gate
	// FollowGate calls changed when WeirGate returns something else, until ctx ends.
	FollowGate func(ctx context.Context, changed func())

	Gate   *manifests.Gate // until all that is to be watched may be read
	Clock  clock.WithTicker
	Images manifests.Watcher               // has coordinators.Images
	Seen   func(pool string) Seen          // what is known of its nodes
	Told   func(node string) (Entry, bool) // what its hub told
	// calls changed, which does not block, when one of the two says something else, until ctx ends.
	Follow  func(ctx context.Context, changed func(pool string))
	Metrics *Metrics
	Log     *slog.Logger
}

// Watched is what the cache of the manager has to hold, and no more.
func Watched() map[client.Object]cache.ByObject {
	own := cache.ByObject{
		Namespaces: map[string]cache.Config{
			contract.ManagerNamespace: {},
		}, Label: labels.SelectorFromSet(labels.Set{contract.ManagedLabel: contract.ManagedBy}),
		Transform: cache.TransformStripManagedFields(),
	}
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}: own, &corev1.Service{}: own, &corev1.Endpoints{}: own, &discoveryv1.EndpointSlice{}: own,
	}
}

// Add lets the manager keep NodePools while it leads, from when their CRD is there.
func Add(m ctrl.Manager, c Config) error {
	return m.Add(ctrl.RunnableFunc(func(ctx context.Context) error {
		if !c.Gate.Granted(ctx, "NodePools", func(ctx context.Context) error { return readable(ctx, m) }) {
			return nil
		}
		return start(ctx, m, c)
	}))
}

// readable tells why something that is to be watched cannot be read.
func readable(ctx context.Context, m ctrl.Manager) error {
	for _, kind := range []schema.GroupVersionKind{
		nodepool.GroupVersion.WithKind("NodePool"), poolv1.GroupVersion.WithKind("Pool"),
	} {
		if _, err := m.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			return err
		}
	}
	for _, all := range []client.ObjectList{&nodepool.List{}, &poolv1.List{}} {
		if err := m.GetAPIReader().List(ctx, all, client.Limit(1)); err != nil {
			return err
		}
	}
	for _, all := range []client.ObjectList{
		&corev1.PodList{}, &corev1.ServiceList{}, &corev1.EndpointsList{}, &discoveryv1.EndpointSliceList{},
	} {
		if err := m.GetAPIReader().List(ctx, all, client.Limit(1), client.InNamespace(contract.ManagerNamespace)); err !=
			nil {
			return err
		}
	}
	return nil
}

// start runs the controller until the context ends.
func start(ctx context.Context, m ctrl.Manager, c Config) error {
	beside := &rival{reader: m.GetAPIReader(), clock: c.Clock, metrics: c.Metrics, log: c.Log}
	var signs *signer
	if c.Authority != nil {
		signs = &signer{
			client: m.GetClient(), reader: m.GetAPIReader(), authority: c.Authority, clock: c.Clock, log: c.Log,
			known: map[string]signed{},
		}
	}
	k := &keeper{
		publisher: publisher{m.GetClient(), m.GetAPIReader(), signs}, events: m.GetEventRecorder("weir-manager"),
		clock: c.Clock, metrics: c.Metrics, log: c.Log, seen: c.Seen, told: c.Told, rival: beside,
		gate: c.WeirGate, places: &coordinators.Keeper{
			Client: m.GetClient(), Images: c.Images, Clock: c.Clock,
		}, granter: granter{client: m.GetClient(), reader: m.GetAPIReader(), last: map[string]string{}},
		serves: func(r nodepool.Resource) (string, error) {
			return kindIn(m.GetRESTMapper(), schema.GroupVersionResource(r))
		},
	}
	sources := []source.Source{
		source.Kind(m.GetCache(), &nodepool.NodePool{}, &handler.TypedEnqueueRequestForObject[*nodepool.NodePool]{}),
		source.Kind(m.GetCache(), &poolv1.Pool{}, &handler.TypedEnqueueRequestForObject[*poolv1.Pool]{}),
		source.Kind(m.GetCache(), &corev1.Node{}, members()),
		source.Func(func(ctx context.Context, q queue) error {
			go c.Follow(ctx, func(pool string) { enqueue(q, pool) })
			return nil
		}),
		source.Func(func(ctx context.Context, q queue) error {
			go c.FollowGate(ctx, func() { everyPool(ctx, m.GetClient(), q) })
			return nil
		}),
		source.Func(func(ctx context.Context, q queue) error {
			return c.Images.Follow(coordinators.Images(), func(client.Object) { go imageless(ctx, m.GetClient(), q) })
		}),
		source.Kind(m.GetCache(), &corev1.Pod{}, owned[*corev1.Pod]()),
		source.Kind(m.GetCache(), &corev1.Service{}, owned[*corev1.Service]()),
		source.Kind(m.GetCache(), &corev1.Endpoints{}, owned[*corev1.Endpoints]()),
		source.Kind(m.GetCache(), &discoveryv1.EndpointSlice{}, owned[*discoveryv1.EndpointSlice]()),
	}
	if signs != nil {
		sources = append(sources, c.Keys(signs.forget))
	}
	puts := &AttributeKeeper{Client: m.GetClient(), Clock: c.Clock, Aside: beside.runs}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return manifests.Control(ctx, "nodepools", k, 1, sources...) })
	all.Go(func() error {
		return manifests.Control(ctx, "attributes", puts, putters,
			source.Kind(m.GetCache(), &corev1.Node{}, bearers()),
			source.Kind(m.GetCache(), &nodepool.NodePool{}, givers(m.GetClient())))
	})
	return all.Wait()
}

const putters = 4 // Nodes of which the attributes are put at once

// kindIn is the kind of a resource, as scopeOf wants it.
func kindIn(m meta.RESTMapper, r schema.GroupVersionResource) (string, error) {
	kind, err := m.KindFor(r)
	if err != nil {
		return "", client.IgnoreNotFound(ignoreNoMatch(err))
	}
	mapping, err := m.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", client.IgnoreNotFound(ignoreNoMatch(err))
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return kind.Kind + "!", nil
	}
	return kind.Kind, nil
}

// ignoreNoMatch is nil where an error says that there is no such resource.
func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
