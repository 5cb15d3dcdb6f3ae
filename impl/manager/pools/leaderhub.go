package pools

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

const portName = "pool"

// foreignError is an object of a name that should be Weir's, and is somebody else's.
type foreignError struct{ kind, name string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s %s/%s is not weir-manager's: delete it", e.kind, contract.ManagerNamespace, e.name)
}

// nameError is a pool whose name no Service can have.
type nameError struct{ pool, why string }

func (e *nameError) Error() string {
	return fmt.Sprintf("pool %q has no %s: a Service cannot have this name: %s", e.pool, contract.LeaderHubPrefix+e.pool,
		e.why)
}

// optional are the annotations that stand there only if they say something.
func optional() []string {
	return []string{
		contract.LeaderHubMode, contract.LeaderHubCoordinators, contract.LeaderHubReplicas, contract.LeaderHubAllowance,
		contract.LeaderHubImages, contract.LeaderHubGate, contract.LeaderHubGateCA, contract.LeaderHubGateWays,
		contract.LeaderHubReach, contract.LeaderHubSigned,
	}
}

// annotationsOf are what leader-hub-<pool> tells. An empty one does not stand there.
func annotationsOf(v *view) map[string]string {
	all := map[string]string{
		contract.LeaderHubConnectivity: strconv.FormatBool(v.nodepool.Spec.InterConnectivity),
		contract.LeaderHubScope:        v.scope.text(),
		contract.LeaderHubMode:         v.plan.wire(), contract.LeaderHubCoordinators: strings.Join(v.plan.coordinators, ","),
		contract.LeaderHubReplicas: v.placed.Members, contract.LeaderHubGate: v.gate.Server,
		contract.LeaderHubGateCA: v.gate.Authorities, contract.LeaderHubReach: reachOf(v.own).text(),
	}
	if v.gate.Ways > 0 {
		all[contract.LeaderHubGateWays] = strconv.Itoa(v.gate.Ways)
	}
	if v.own != nil && v.own.Spec.Offline != nil {
		all[contract.LeaderHubAllowance] = v.own.Spec.Offline.CertificateAllowance
	}
	if v.own != nil && v.own.Spec.Images != nil {
		all[contract.LeaderHubImages] = imagesOf(v.own.Spec.Images)
	}
	for _, own := range optional() { // without a Pool hubs go by their flags
		if all[own] == "" {
			delete(all, own)
		}
	}
	return all
}

// leaderHub are the objects leader-hub-<pool> of a pool, as they should be. An error beside objects names leaders that
// are left out.
func leaderHub(v *view) ([]client.Object, error) {
	p := v.nodepool
	name := contract.LeaderHubPrefix + p.Name
	if why := validation.IsDNS1035Label(name); len(why) > 0 {
		return nil, &nameError{p.Name, strings.Join(why, "; ")}
	}
	meta := func(name string, more map[string]string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: name, Labels: map[string]string{
			contract.ManagedLabel: contract.ManagedBy, "app.kubernetes.io/part-of": "weir", contract.NodePoolLabel: p.Name,
		}, Annotations: annotationsOf(v), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: nodepool.GroupVersion.String(), Kind: "NodePool", Name: p.Name, UID: p.UID, Controller: ptr.To(true),
		}}}
		maps.Copy(m.Labels, more)
		return m
	}
	service := &corev1.Service{ObjectMeta: meta(name, nil), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{
			{Name: portName, Port: contract.HubPoolPort, Protocol: corev1.ProtocolTCP},
		},
	}}
	endpoints := &corev1.Endpoints{ObjectMeta: meta(name, map[string]string{discoveryv1.LabelSkipMirror: "true"})}
	all := []client.Object{service, endpoints}
	var failed []error
	families := map[discoveryv1.AddressType][]discoveryv1.Endpoint{}
	var addresses []corev1.EndpointAddress
	for _, l := range p.Status.LeaderEndpoints {
		ip, ok := reachable(l.Address)
		if !ok {
			failed = append(failed,
				fmt.Errorf("address %.64q of the leader %s of pool %s: want one that others can connect to: it is left out",
					l.Address, l.NodeName, p.Name))
			continue
		}
		family := discoveryv1.AddressTypeIPv4
		if ip.Is6() {
			family = discoveryv1.AddressTypeIPv6
		}
		addresses = append(addresses, corev1.EndpointAddress{IP: l.Address, NodeName: ptr.To(l.NodeName)})
		families[family] = append(families[family], discoveryv1.Endpoint{
			Addresses: []string{l.Address}, NodeName: ptr.To(l.NodeName),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	if len(addresses) > 0 {
		endpoints.Subsets = []corev1.EndpointSubset{{
			Addresses: addresses, Ports: []corev1.EndpointPort{
				{Name: portName, Port: contract.HubPoolPort, Protocol: corev1.ProtocolTCP},
			},
		}}
	}
	for i, family := range slices.Sorted(maps.Keys(families)) {
		slice := name
		if i > 0 {
			slice += "-" + strings.ToLower(string(family))
		}
		all = append(all, &discoveryv1.EndpointSlice{
			ObjectMeta: meta(slice, map[string]string{
				discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: contract.ManagedBy,
			}), AddressType: family,
			Endpoints: families[family], Ports: []discoveryv1.EndpointPort{
				{Name: ptr.To(portName), Port: ptr.To[int32](contract.HubPoolPort), Protocol: ptr.To(corev1.ProtocolTCP)},
			},
		})
	}
	return all, errors.Join(failed...)
}
