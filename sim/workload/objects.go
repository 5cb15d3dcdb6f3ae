package workload

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Names that k8s.io/api has no constant for.
const (
	endpointsManagedBy  = "endpoints.kubernetes.io/managed-by"
	endpointsController = "endpoint-controller"
	slicesController    = "endpointslice-controller.k8s.io"
	applicationLabel    = "app.kubernetes.io/name"
)

// port is one port of every service.
type port struct {
	name          string
	service, pods int32
}

// ports are in the order of their service; Endpoints happen to have the same one.
var ports = [...]port{{"http", 80, 8080}, {"metrics", 9090, 9090}}

// labels are those of the Service, which both controllers copy to what they make of it.
func (s *service) labels() map[string]string {
	return map[string]string{applicationLabel: s.name, "app.kubernetes.io/part-of": s.namespace}
}

func (s *service) triggerTime() string { return s.trigger.UTC().Format(time.RFC3339Nano) }

// object is the Service.
func (s *service) object() *corev1.Service {
	o := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name, Labels: s.labels()},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP},
	}
	for _, p := range ports {
		o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{
			Name: p.name, Protocol: corev1.ProtocolTCP, Port: p.service, TargetPort: intstr.FromInt32(p.pods),
		})
	}
	return o
}

// endpointSlice is the object of one of s's slices, as the EndpointSlice controller writes it.
func (s *service) endpointSlice(sl *slice) *discoveryv1.EndpointSlice {
	labels := s.labels()
	labels[discoveryv1.LabelServiceName] = s.name
	labels[discoveryv1.LabelManagedBy] = slicesController
	if sl.hidden {
		labels[corev1.IsHeadlessService] = "" // as those of a headless Service, which kube-proxy leaves out
	}
	o := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.namespace,
			Name:            sl.name,
			GenerateName:    s.name + "-",
			ResourceVersion: sl.version,
			Labels:          labels,
			Annotations:     map[string]string{corev1.EndpointsLastChangeTriggerTime: s.triggerTime()},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Service", Name: s.name, UID: s.uid,
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   make([]discoveryv1.Endpoint, 0, len(sl.endpoints)),
	}
	for _, p := range ports {
		o.Ports = append(o.Ports, discoveryv1.EndpointPort{
			Name: ptr.To(p.name), Port: ptr.To(p.pods), Protocol: ptr.To(corev1.ProtocolTCP),
		})
	}
	for _, e := range sl.endpoints {
		o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{e.ip},
			Conditions: discoveryv1.EndpointConditions{
				Ready: ptr.To(e.ready), Serving: ptr.To(e.ready), Terminating: ptr.To(false),
			},
			NodeName:  ptr.To(e.node),
			Zone:      ptr.To(e.zone()),
			TargetRef: s.podReference(e),
		})
	}
	return o
}

// endpoints is the Endpoints object, as the Endpoints controller writes it.
func (s *service) endpoints() *corev1.Endpoints {
	labels := s.labels()
	labels[endpointsManagedBy] = endpointsController
	labels[discoveryv1.LabelSkipMirror] = "true"
	o := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace:       s.namespace,
		Name:            s.name,
		ResourceVersion: s.endpointsVersion,
		Labels:          labels,
		Annotations:     map[string]string{corev1.EndpointsLastChangeTriggerTime: s.triggerTime()},
	}}
	var subset corev1.EndpointSubset
	for _, sl := range s.slices {
		for _, e := range sl.endpoints {
			address := corev1.EndpointAddress{IP: e.ip, NodeName: ptr.To(e.node), TargetRef: s.podReference(e)}
			if e.ready {
				subset.Addresses = append(subset.Addresses, address)
			} else {
				subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
			}
		}
	}
	// The controller sorts addresses by a hash; uids are as good as one.
	byUID := func(a, b corev1.EndpointAddress) int {
		return strings.Compare(string(a.TargetRef.UID), string(b.TargetRef.UID))
	}
	slices.SortFunc(subset.Addresses, byUID)
	slices.SortFunc(subset.NotReadyAddresses, byUID)
	for _, p := range ports {
		subset.Ports = append(subset.Ports, corev1.EndpointPort{Name: p.name, Port: p.pods, Protocol: corev1.ProtocolTCP})
	}
	o.Subsets = []corev1.EndpointSubset{subset}
	return o
}

func (s *service) podReference(e endpoint) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: e.pod, UID: e.uid}
}
