package moved

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// service is a slice as Kubernetes makes it. Each endpoint has the name of its pod, a zone and hints.
func service(name string, family discoveryv1.AddressType, points ...string) *discoveryv1.EndpointSlice {
	s := sliceOf(name, family, points...)
	s.ResourceVersion = "77"
	s.Labels[discoveryv1.LabelManagedBy] = "endpointslice-controller.k8s.io"
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: "of-web"}}
	s.Ports = []discoveryv1.EndpointPort{
		{Name: ptr.To("http"), Port: ptr.To(int32(80)), Protocol: ptr.To(corev1.ProtocolTCP)},
	}
	for i := range s.Endpoints {
		if e := &s.Endpoints[i]; e.TargetRef != nil {
			e.Hostname = ptr.To(e.TargetRef.Name)
		}
		s.Endpoints[i].Zone = ptr.To("north")
		s.Endpoints[i].Hints = &discoveryv1.EndpointHints{
			ForZones: []discoveryv1.ForZone{{Name: "north"}}, ForNodes: []discoveryv1.ForNode{{Name: "a"}},
		}
	}
	return s
}

// headless makes a slice that of a headless Service.
func headless(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s.Labels[corev1.IsHeadlessService] = ""
	return s
}

// coreDNS makes a slice that of the cluster's DNS.
func coreDNS(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s.Namespace, s.Labels[serviceLabel], s.Labels["k8s-app"] = "kube-system", "kube-dns", "kube-dns"
	s.Ports = []discoveryv1.EndpointPort{
		{Name: ptr.To("dns"), Port: ptr.To(int32(53)), Protocol: ptr.To(corev1.ProtocolUDP)},
		{Name: ptr.To("dns-tcp"), Port: ptr.To(int32(53)), Protocol: ptr.To(corev1.ProtocolTCP)},
		{Name: ptr.To("metrics"), Port: ptr.To(int32(9153)), Protocol: ptr.To(corev1.ProtocolTCP)},
	}
	return s
}

// TestServices: slices of Services of all kinds, as clients get them. Addresses and conditions of endpoints change, and
// nothing else does: who is named web-0 stays so, wherever it is.
func TestServices(t *testing.T) {
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	for name, c := range map[string]struct {
		a, b      []string // corrections
		silent    bool     // b is
		publishes bool     // the Service does
		in        *discoveryv1.EndpointSlice
		want      []string // the points that are left, in order
	}{
		"headless": {
			a: []string{"web-0=10.0.0.9"}, in: headless(service("web", v4, "web-0@a 10.0.0.1 rs", "web-1@b 10.1.0.1 rs")),
			want: []string{"web-0@a 10.0.0.9 rs", "web-1@b 10.1.0.1 rs"},
		},
		"a StatefulSet of which two swap": {
			a: []string{"web-0=10.0.0.2", "web-1=10.0.0.1"},
			in: headless(service("web", v4, "web-0@a 10.0.0.1 rs", "web-1@a 10.0.0.2 rs",
				"web-2@b 10.1.0.1 rs")),
			want: []string{"web-0@a 10.0.0.2 rs", "web-1@a 10.0.0.1 rs", "web-2@b 10.1.0.1 rs"},
		},
		"a StatefulSet of which two swap, on two nodes": {
			a: []string{"web-0=10.1.0.1"}, b: []string{"web-1=10.0.0.1"},
			in:   headless(service("web", v4, "web-0@a 10.0.0.1 rs", "web-1@b 10.1.0.1 rs")),
			want: []string{"web-0@a 10.1.0.1 rs", "web-1@b 10.0.0.1 rs"},
		},
		"a StatefulSet that publishes who is not ready": {
			publishes: true, a: []string{"web-0~10.0.0.9"},
			in:   headless(service("web", v4, "web-0@a 10.0.0.1 rs", "web-1@b 10.1.0.1 r")),
			want: []string{"web-0@a 10.0.0.9 r", "web-1@b 10.1.0.1 r"},
		},
		"CoreDNS, one of it on a dead node": {
			silent: true, a: []string{"dns-1=10.0.0.9"},
			in:   coreDNS(service("kube-dns", v4, "dns-1@a 10.0.0.1 rs", "dns-2@b 10.1.0.1 rs")),
			want: []string{"dns-1@a 10.0.0.9 rs", "dns-2@b 10.1.0.1 -"},
		},
		"CoreDNS with both families": {
			a: []string{"dns-1=10.0.0.9,fd00::9"}, in: coreDNS(service("kube-dns", v6, "dns-1@a fd00::1 rs")),
			want: []string{"dns-1@a fd00::9 rs"},
		},
		"of the network of the node": {
			a: []string{"proxy=h192.168.0.7"}, in: service("web", v4, "proxy@a 192.168.0.3 rs", "proxy-b@b 192.168.0.4 rs"),
			want: []string{"proxy@a 192.168.0.7 rs", "proxy-b@b 192.168.0.4 rs"},
		},
		"old and new ones mixed": { // p: the cloud knows; q: it does not; r: its address is q's; s: not moved
			a:    []string{"p=10.0.0.9", "q=10.0.0.3"},
			in:   service("web", v4, "p@a 10.0.0.9 rs", "q@a 10.0.0.2 rs", "r@a 10.0.0.3 rs", "s@a 10.0.0.4 rs"),
			want: []string{"p@a 10.0.0.9 rs", "q@a 10.0.0.3 rs", "s@a 10.0.0.4 rs"},
		},
		"a dead pod's address, of another Service": {
			a: []string{"q=10.0.0.1"}, in: service("web", v4, "p@a 10.0.0.1 rs", "s@a 10.0.0.4 rs"),
			want: []string{"s@a 10.0.0.4 rs"},
		},
		"in several pools": {
			silent: true, a: []string{"p=10.0.0.9"},
			in:   service("web", v4, "p@a 10.0.0.1 rs", "q@b 10.1.0.1 rs", "p@elsewhere 10.2.0.1 rs", "r@cloud-1 10.3.0.1 rs"),
			want: []string{"p@a 10.0.0.9 rs", "q@b 10.1.0.1 -", "p@elsewhere 10.2.0.1 rs", "r@cloud-1 10.3.0.1 rs"},
		},
		"terminating, and serves no more": {
			a: []string{"p~10.0.0.1"}, in: service("web", v4, "p@a 10.0.0.1 st"), want: []string{"p@a 10.0.0.1 t"},
		},
		"terminating, and serves from elsewhere": {
			a: []string{"p=10.0.0.9"}, in: service("web", v4, "p@a 10.0.0.1 st"), want: []string{"p@a 10.0.0.9 st"},
		},
		"an operator's own, beside a pod": {
			a: []string{"p=10.0.0.9"}, in: service("web", v4, "10.0.0.1 rs", "10.0.0.9 rs", "p@a 10.0.0.1 rs"),
			want: []string{"10.0.0.1 rs", "10.0.0.9 rs", "p@a 10.0.0.9 rs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := setOf(t, c.a, c.b, c.silent)
			want := c.in.DeepCopy()
			want.Endpoints = nil
			for _, text := range c.want { // the rest of an endpoint is what it was
				p := point(text)
				for _, e := range c.in.DeepCopy().Endpoints {
					if reflect.DeepEqual(e.TargetRef, p.TargetRef) && reflect.DeepEqual(e.NodeName, p.NodeName) &&
						(p.TargetRef != nil || e.Addresses[0] == p.Addresses[0]) {
						e.Addresses, e.Conditions = p.Addresses, p.Conditions
						want.Endpoints = append(want.Endpoints, e)
					}
				}
			}
			for _, enc := range []wire.Encoding{wire.Protobuf, wire.JSON} {
				out := s.SliceForm(enc, func(string, string) bool { return c.publishes })(encoded(t, enc, c.in))
				var got discoveryv1.EndpointSlice
				if err := decode(enc, out.Raw, &got); err != nil || !reflect.DeepEqual(&got, want) {
					t.Errorf("%v: %v, %v, want %v", enc, got.Endpoints, err, want.Endpoints)
				}
			}
		})
	}
}

// TestHeadlessEndpoints: names in Endpoints stay with their pods, which swap their addresses. What is no pod stays.
func TestHeadlessEndpoints(t *testing.T) {
	address := func(uid, ip string) corev1.EndpointAddress {
		e := point(uid + "@a " + ip + " rs")
		return corev1.EndpointAddress{IP: ip, Hostname: uid, NodeName: e.NodeName, TargetRef: e.TargetRef}
	}
	custom := corev1.EndpointAddress{IP: "10.0.0.1"}
	vm := corev1.EndpointAddress{
		IP: "10.0.0.3", NodeName: ptr.To("a"), TargetRef: &corev1.ObjectReference{Kind: "VirtualMachine", UID: "web-0"},
	}
	make := func(all ...corev1.EndpointAddress) *corev1.Endpoints {
		return &corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", ResourceVersion: "77", Labels: map[string]string{corev1.IsHeadlessService: ""},
			},
			Subsets: []corev1.EndpointSubset{{Addresses: all, Ports: []corev1.EndpointPort{{Name: "http", Port: 80}}}},
		}
	}
	s := setOf(t, []string{"web-0=10.0.0.2", "web-1=10.0.0.1"}, nil, false)
	out, _ := s.Endpoints(make(address("web-0", "10.0.0.1"), address("web-1", "10.0.0.2"), custom, vm), false)
	want := make(address("web-0", "10.0.0.2"), address("web-1", "10.0.0.1"), custom, vm)
	if !reflect.DeepEqual(out, want) {
		t.Errorf("%v, want %v", out.Subsets, want.Subsets)
	}
}
