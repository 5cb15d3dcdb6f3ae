package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/pause"
)

const electionRetry = 200 * time.Millisecond

// election shows the election Lease to the fence: attach sees each write before its writer is answered, so that nothing of
// the old leader is applied after the new one knows that it leads; run follows the Lease, for the write whose request was cut
// off behind the store; look reads it.
type election struct {
	leases *leases
	fence  *fence.Fence
	held   func() // told when a holder has written it here
	clock  clock.WithTicker
	logger *slog.Logger
}

// attach hears of the writes that go through the store. The server must not run yet.
func (e *election) attach() {
	written := func(obj runtime.Object, dryRun []string, deleted bool) {
		lease, ok := obj.(*coordinationv1.Lease)
		if !ok || len(dryRun) > 0 || lease.Namespace != contract.LeaseNamespace || lease.Name != contract.ElectionLease {
			return
		}
		if s, err := sight(lease, deleted); err == nil {
			e.fence.Observe(s)
			e.leases.holders.tenure.Saw(s.Version, e.clock.Now())
			if s.Holder != "" {
				e.held()
			}
		}
	}
	e.leases.AfterCreate = func(obj runtime.Object, o *metav1.CreateOptions) { written(obj, o.DryRun, false) }
	e.leases.AfterUpdate = func(obj runtime.Object, o *metav1.UpdateOptions) { written(obj, o.DryRun, false) }
	e.leases.AfterDelete = func(obj runtime.Object, o *metav1.DeleteOptions) {
		if o == nil {
			o = &metav1.DeleteOptions{}
		}
		written(obj, o.DryRun, true)
	}
}

// run follows the Lease until ctx ends.
func (e *election) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := e.follow(ctx); err != nil && ctx.Err() == nil {
			e.logger.Debug("the watch of the election lease ended", "err", err)
		}
		pause.For(ctx, e.clock, electionRetry)
	}
	return nil
}

// follow lists and watches the Lease until the watch ends.
func (e *election) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(genericrequest.WithNamespace(ctx, contract.LeaseNamespace))
	defer cancel()
	only := fields.OneTermEqualSelector("metadata.name", contract.ElectionLease)
	obj, err := e.leases.List(ctx, &internalversion.ListOptions{FieldSelector: only})
	if err != nil {
		return err
	}
	list := obj.(*coordinationv1.LeaseList)
	now, err := sightList(list)
	if err != nil {
		return err
	}
	e.follows(now, true)
	w, err := e.leases.Watch(ctx, &internalversion.ListOptions{FieldSelector: only, ResourceVersion: list.ResourceVersion, Watch: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		if ev.Type == watch.Error {
			return apierrors.FromObject(ev.Object)
		}
		obj := ev.Object
		if shared, ok := obj.(runtime.CacheableObject); ok { // so that it is encoded once for all watches
			obj = shared.GetObject()
		}
		lease, ok := obj.(*coordinationv1.Lease)
		if !ok {
			return fmt.Errorf("the watch shows a %T", obj)
		}
		now, err := sight(lease, ev.Type == watch.Deleted)
		if err != nil {
			return err
		}
		e.follows(now, false)
	}
	return errors.New("closed")
}

func (e *election) follows(s fence.Sighting, first bool) {
	e.fence.Follow(s, first)
	e.leases.holders.tenure.Saw(s.Version, e.clock.Now())
}

// look reads the Lease as it is now: the watch may be a moment behind.
func (e *election) look(ctx context.Context) error {
	obj, err := e.leases.Get(genericrequest.WithNamespace(ctx, contract.LeaseNamespace), contract.ElectionLease, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // at which version is not told; the watch tells
	}
	if err != nil {
		return fmt.Errorf("read the election lease: %w", err)
	}
	s, err := sight(obj.(*coordinationv1.Lease), false)
	if err != nil {
		return err
	}
	e.fence.Observe(s)
	return nil
}

// Hubs implements pull.Leases, by the Leases of nodes.
func (e *election) Hubs(ctx context.Context) map[string]string {
	obj, err := e.leases.List(genericrequest.WithNamespace(ctx, contract.NodeLeaseNamespace), &internalversion.ListOptions{})
	if err != nil {
		e.logger.Debug("cannot list the Leases of nodes", "err", err)
		return nil
	}
	all := map[string]string{}
	for _, l := range obj.(*coordinationv1.LeaseList).Items {
		if address := l.Annotations[contract.PoolAddress]; address != "" {
			all[l.Name] = address
		}
	}
	return all
}

// Free implements pull.Leases.
func (e *election) Free(ctx context.Context, l fence.Leader) error {
	ctx = genericrequest.WithNamespace(ctx, contract.LeaseNamespace)
	take := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		lease := old.DeepCopyObject().(*coordinationv1.Lease)
		s, err := sight(lease, false)
		if err != nil {
			return nil, err
		}
		e.fence.Observe(s)
		if err := e.fence.Admit(l); err != nil {
			return nil, err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(string), nil
		delete(lease.Annotations, contract.PoolAddress)
		return lease, nil
	})
	_, _, err := e.leases.Store.Update(ctx, contract.ElectionLease, take, nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}
