package coordinator

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/weir-edge/weir/impl/coordinator/lead"
)

// stored are the Leases in etcd as an election uses them. It implements lead.LeaseStore.
type stored struct{ *registry.Store }

// tell shows an election each write that goes through the store, before its writer is answered. The server must not run
// yet.
func (s stored) tell(e *lead.Election) {
	wrote := func(obj runtime.Object, dryRun []string, deleted bool) {
		if lease, ok := obj.(*coordinationv1.Lease); ok && len(dryRun) == 0 {
			e.Wrote(lease, deleted)
		}
	}
	s.AfterCreate = func(obj runtime.Object, o *metav1.CreateOptions) { wrote(obj, o.DryRun, false) }
	s.AfterUpdate = func(obj runtime.Object, o *metav1.UpdateOptions) { wrote(obj, o.DryRun, false) }
	s.AfterDelete = func(obj runtime.Object, o *metav1.DeleteOptions) {
		if o == nil {
			o = &metav1.DeleteOptions{}
		}
		wrote(obj, o.DryRun, true)
	}
}

func (s stored) List(ctx context.Context, namespace, name string) (*coordinationv1.LeaseList, error) {
	obj, err := s.Store.List(genericrequest.WithNamespace(ctx, namespace),
		&internalversion.ListOptions{FieldSelector: named(name)})
	if err != nil {
		return nil, err
	}
	return obj.(*coordinationv1.LeaseList), nil
}

func (s stored) Follow(ctx context.Context, namespace, name, version string,
	take func(lease *coordinationv1.Lease, deleted bool) error) error {
	ctx, cancel := context.WithCancel(genericrequest.WithNamespace(ctx, namespace))
	defer cancel()
	w, err := s.Watch(ctx, &internalversion.ListOptions{FieldSelector: named(name), ResourceVersion: version, Watch: true})
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
		if err := take(lease, ev.Type == watch.Deleted); err != nil {
			return err
		}
	}
	return errors.New("closed")
}

func (s stored) Change(ctx context.Context, namespace, name string, change func(*coordinationv1.Lease) error) error {
	changed := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		lease := old.DeepCopyObject().(*coordinationv1.Lease)
		return lease, change(lease)
	})
	_, _, err := s.Update(genericrequest.WithNamespace(ctx, namespace), name, changed, nil,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// named selects the Lease of a name; "": all.
func named(name string) fields.Selector {
	if name == "" {
		return nil
	}
	return fields.OneTermEqualSelector("metadata.name", name)
}
