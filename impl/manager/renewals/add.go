package renewals

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/certificates"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/pki"
)

// workers are how many pools are looked at at a time.
const workers = 8

// Config is what renews Leases. All but Keys and Documents is needed.
type Config struct {
	REST     *rest.Config
	Informer manifests.NewInformer
	Members  func() source.Source                          // asks for the pools that nodes join or leave
	Keys     func(changed func(pool string)) source.Source // for those whose keys may be others; nil: nobody knows
	// Documents is the sum of a pool's signed documents, as the cloud has them, for its receipts; "": that is not known.
	// nil: it never is.
	Documents func(ctx context.Context, pool string) string
	Gate      *manifests.Gate // until reports may be read
	Clock     clock.WithTicker
	Metrics   *Metrics
	Log       *slog.Logger
}

// Add lets the manager renew Leases while it leads, from when it may read what pools report.
func Add(m ctrl.Manager, c Config) error {
	return m.Add(ctrl.RunnableFunc(func(ctx context.Context) error {
		readable := manifests.Listed(m.GetAPIReader(), &coordinationv1.LeaseList{},
			client.InNamespace(contract.KeyNamespace))
		if !c.Gate.Granted(ctx, "reports of pools", readable) {
			return nil
		}
		return run(ctx, m, c)
	}))
}

// run runs the controllers until the context ends.
func run(ctx context.Context, m ctrl.Manager, c Config) error {
	// How fast Leases are written is limited by how many are at a time, and by kube-apiserver.
	quick := rest.CopyConfig(c.REST)
	quick.QPS = -1
	writes, err := client.New(quick, client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", quick.Host, err)
	}
	reports, err := cache.New(c.REST, cache.Options{
		HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), NewInformer: c.Informer,
		DefaultNamespaces: map[string]cache.Config{contract.KeyNamespace: {}},
	})
	if err != nil {
		return fmt.Errorf("cache of reports of pools: %w", err)
	}
	lease := func(ctx context.Context, pool string) (*coordinationv1.Lease, error) {
		l := &coordinationv1.Lease{}
		err := reports.Get(ctx, client.ObjectKey{Namespace: contract.KeyNamespace, Name: contract.HeardPrefix + pool}, l)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return l, err
	}
	k := &keeper{
		lease: lease, cache: m.GetClient(), client: writes, clock: c.Clock, began: c.Clock.Now(), metrics: c.Metrics,
		signer: func(ctx context.Context, pool string) (*pki.Authority, error) {
			return certificates.Signer(ctx, writes, pool)
		},
		documents: c.Documents, log: c.Log, slots: make(chan struct{}, parallel), pools: map[string]*pool{},
	}
	heard := []source.Source{source.Kind(reports, &coordinationv1.Lease{}, reported())}
	if c.Keys != nil {
		heard = append(heard, c.Keys(k.rekeyed))
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return reports.Start(ctx) })
	all.Go(func() error { return manifests.Control(ctx, "renewals", k, workers, heard...) })
	all.Go(func() error {
		return manifests.Control(ctx, "reports", &stand{nodes: m.GetClient(), lease: lease, client: writes}, 1, c.Members(),
			source.Kind(reports, &coordinationv1.Lease{}, gone()))
	})
	return all.Wait()
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ask asks for the pool of a Lease.
func ask(q queue, l *coordinationv1.Lease) {
	if pool, ours := strings.CutPrefix(l.Name, contract.HeardPrefix); ours {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
	}
}

// reported asks for the pools that report something else, or have gone.
func reported() handler.TypedEventHandler[*coordinationv1.Lease, reconcile.Request] {
	return handler.TypedFuncs[*coordinationv1.Lease, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*coordinationv1.Lease], q queue) { ask(q, e.Object) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*coordinationv1.Lease], q queue) { ask(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*coordinationv1.Lease], q queue) {
			if was, is := e.ObjectOld.Spec.HolderIdentity, e.ObjectNew.Spec.HolderIdentity; is != nil && (was == nil ||
				*was != *is) {
				ask(q, e.ObjectNew)
			}
		},
	}
}

// gone asks for the pools whose Lease somebody has removed.
func gone() handler.TypedEventHandler[*coordinationv1.Lease, reconcile.Request] {
	return handler.TypedFuncs[*coordinationv1.Lease, reconcile.Request]{
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*coordinationv1.Lease], q queue) { ask(q, e.Object) },
	}
}
