package pools

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
)

// publisher writes the objects leader-hub-<pool>.
type publisher struct {
	client client.Client
	reader client.Reader // not from the cache
	signs  *signer       // nil: nobody signs
}

// publish writes the objects leader-hub-<pool>, and removes slices of families that are left.
func (w *publisher) publish(ctx context.Context, v *view) error {
	all, err := leaderHub(v)
	if len(all) == 0 {
		return err
	}
	slicesKept := map[string]bool{}
	for _, o := range all {
		if e, ok := o.(*corev1.Endpoints); ok && w.signs != nil {
			err = errors.Join(err, w.signs.sign(ctx, v, e))
		}
		if s, ok := o.(*discoveryv1.EndpointSlice); ok {
			slicesKept[s.Name] = true
		}
		err = errors.Join(err, w.put(ctx, o))
	}
	var have discoveryv1.EndpointSliceList
	if e := w.client.List(ctx, &have, client.InNamespace(contract.ManagerNamespace),
		client.MatchingLabels{contract.NodePoolLabel: v.name}); e != nil {
		return errors.Join(err, e)
	}
	for i := range have.Items {
		if s := &have.Items[i]; !slicesKept[s.Name] {
			err = errors.Join(err, client.IgnoreNotFound(w.client.Delete(ctx, s)))
		}
	}
	return err
}

// put writes one object if it is not as it should be.
func (w *publisher) put(ctx context.Context, want client.Object) error {
	have := want.DeepCopyObject().(client.Object)
	err := w.client.Get(ctx, client.ObjectKeyFromObject(want), have) // the cache holds what has our label
	if apierrors.IsNotFound(err) {
		if err = w.client.Create(ctx, want); apierrors.IsAlreadyExists(err) {
			return w.taken(ctx, want)
		}
		return err
	}
	if err != nil {
		return err
	}
	next := have.DeepCopyObject().(client.Object)
	if replaced(next, want) {
		return client.IgnoreNotFound(w.client.Delete(ctx, have)) // the cache tells of it, and then it is made again
	}
	if equality.Semantic.DeepEqual(have, next) {
		return nil
	}
	return w.client.Update(ctx, next)
}

// taken tells why an object cannot be made: another one has its name, or the cache has not heard of ours yet.
func (w *publisher) taken(ctx context.Context, want client.Object) error {
	have := want.DeepCopyObject().(client.Object)
	if err := w.reader.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
		return err
	}
	if have.GetLabels()[contract.ManagedLabel] != contract.ManagedBy {
		return &foreignError{kindOf(want), want.GetName()}
	}
	return errBehind
}

// errBehind is a cache that has not heard yet of what was written.
var errBehind = errors.New("the cache is behind")

func kindOf(o client.Object) string {
	switch o.(type) {
	case *corev1.Service:
		return "Service"
	case *discoveryv1.EndpointSlice:
		return "EndpointSlice"
	}
	return "Endpoints"
}

// replaced makes an object as it should be, and keeps what others added beside. It reports whether that takes another
// object, because a field cannot change.
func replaced(o, want client.Object) bool {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, own := range optional() {
		delete(annotations, own)
	}
	maps.Copy(labels, want.GetLabels())
	maps.Copy(annotations, want.GetAnnotations())
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	o.SetOwnerReferences(want.GetOwnerReferences())
	switch is := want.(type) {
	case *corev1.Service:
		s := o.(*corev1.Service)
		if s.Spec.ClusterIP != is.Spec.ClusterIP {
			return true
		}
		s.Spec.Selector, s.Spec.Type = nil, corev1.ServiceTypeClusterIP
		if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Name != portName || s.Spec.Ports[0].Port != contract.HubPoolPort ||
			s.Spec.Ports[0].Protocol != corev1.ProtocolTCP {
			s.Spec.Ports = is.Spec.Ports
		}
	case *corev1.Endpoints:
		o.(*corev1.Endpoints).Subsets = is.Subsets
	case *discoveryv1.EndpointSlice:
		s := o.(*discoveryv1.EndpointSlice)
		if s.AddressType != is.AddressType {
			return true
		}
		s.Endpoints, s.Ports = is.Endpoints, is.Ports
	}
	return false
}
