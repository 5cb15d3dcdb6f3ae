package workload

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// MarkerName is the name of the marker's objects, in the namespace default.
const MarkerName = "weir-marker"

// Marker is one EndpointSlice and one Endpoints that every client watches. Writing it tells when a change that was made
// at a known time is everywhere. Use it from one goroutine at a time.
type Marker struct {
	client  kubernetes.Interface
	written int
}

// NewMarker creates the objects, and a Service: kube-controller-manager deletes Endpoints that have none, and mirrors
// those that do not ask it to leave them alone.
func NewMarker(ctx context.Context, client kubernetes.Interface) (*Marker, error) {
	m := &Marker{client: client}
	slice, endpoints := m.objects()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: MarkerName, Namespace: slice.Namespace},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}
	if _, err := client.CoreV1().Services(slice.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create marker: %w", err)
	}
	if _, err := client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err !=
		nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create marker: %w", err)
	}
	if _, err := client.CoreV1().Endpoints(slice.Namespace).Create(ctx, endpoints, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create marker: %w", err)
	}
	return m, nil
}

// Write changes both objects and returns their versions by resource.
func (m *Marker) Write(ctx context.Context) (map[string]uint64, error) {
	m.written++
	slice, endpoints := m.objects()
	slice, err := m.client.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write marker %d: %w", m.written, err)
	}
	endpoints, err = m.client.CoreV1().Endpoints(slice.Namespace).Update(ctx, endpoints, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write marker %d: %w", m.written, err)
	}
	versions := map[string]uint64{}
	for resource, text := range map[string]string{
		"endpointslices": slice.ResourceVersion, "endpoints": endpoints.ResourceVersion,
	} {
		if versions[resource], err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("write marker %d: version %q: %w", m.written, text, err)
		}
	}
	return versions, nil
}

// objects are the marker as it is after the last write.
func (m *Marker) objects() (*discoveryv1.EndpointSlice, *corev1.Endpoints) {
	port, ready := int32(1+m.written%65535), true
	meta := metav1.ObjectMeta{
		Name: MarkerName, Namespace: metav1.NamespaceDefault,
		Labels:      map[string]string{discoveryv1.LabelServiceName: MarkerName, discoveryv1.LabelSkipMirror: "true"},
		Annotations: map[string]string{"weir.test/marker": strconv.Itoa(m.written)},
	}
	const ip = "192.0.2.1" // of the range for documentation
	return &discoveryv1.EndpointSlice{
			ObjectMeta: *meta.DeepCopy(), AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
			},
			Ports: []discoveryv1.EndpointPort{{Port: &port}},
		}, &corev1.Endpoints{
			ObjectMeta: meta,
			Subsets: []corev1.EndpointSubset{
				{Addresses: []corev1.EndpointAddress{{IP: ip}}, Ports: []corev1.EndpointPort{{Port: port}}},
			},
		}
}
