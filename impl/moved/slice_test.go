package moved

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// overlaid are the cases of what becomes of a slice. Nodes a and b are of the pool, b is silent if that is said.
var overlaid = map[string]struct {
	a, b      []string // corrections
	silent    bool
	publishes bool
	slice     bool // Endpoints cannot say it
	family    discoveryv1.AddressType
	in, want  []string
}{
	"nothing is said": {
		in: []string{"p@a 10.0.0.1 rs", "q@b 10.1.0.1 rs"}, want: []string{"p@a 10.0.0.1 rs-", "q@b 10.1.0.1 rs-"},
	},
	"a pod has moved, another one has not": {
		a: []string{"p=10.0.0.9"}, in: []string{"p@a 10.0.0.1 rs", "q@a 10.0.0.2 rs"},
		want: []string{"p@a 10.0.0.9 rs-", "q@a 10.0.0.2 rs-"},
	},
	"not ready": {
		a: []string{"p~10.0.0.1"}, in: []string{"p@a 10.0.0.1 rs"}, want: []string{"p@a 10.0.0.1 -"},
	},
	"ready by now": {
		a: []string{"p=10.0.0.9"}, in: []string{"p@a 10.0.0.1 -"}, want: []string{"p@a 10.0.0.9 rs-"},
	},
	"without an address yet": {a: []string{"p~"}, in: []string{"p@a 10.0.0.1 rs"}, want: nil},
	"gone": {
		a: []string{"p!"}, in: []string{"p@a 10.0.0.1 rs", "q@a 10.0.0.2 rs"}, want: []string{"q@a 10.0.0.2 rs-"},
	},
	"terminating stays so": {
		slice: true, a: []string{"p=10.0.0.9"}, in: []string{"p@a 10.0.0.1 st"}, want: []string{"p@a 10.0.0.9 st-"},
	},
	"published though not ready": {
		publishes: true, a: []string{"p~10.0.0.9"}, in: []string{"p@a 10.0.0.1 rs"}, want: []string{"p@a 10.0.0.9 r-"},
	},
	"published, as the slice shows": {
		slice: true, a: []string{"p~10.0.0.9"}, in: []string{"p@a 10.0.0.1 rs", "q@b 10.1.0.1 r"},
		want: []string{"p@a 10.0.0.9 r-", "q@b 10.1.0.1 r-"},
	},
	"published, but without an address": {
		publishes: true, a: []string{"p~"}, in: []string{"p@a 10.0.0.1 rs"}, want: nil,
	},
	"the node of the network": {
		a:    []string{"p=h192.168.0.7", "q~h192.168.0.7"},
		in:   []string{"p@a 192.168.0.3 rs", "q@a 192.168.0.3 rs", "r@a 192.168.0.7 rs"},
		want: []string{"p@a 192.168.0.7 rs-", "q@a 192.168.0.7 -", "r@a 192.168.0.7 rs-"},
	},
	"two pods swap": {
		a: []string{"p=10.0.0.2", "q=10.0.0.1"}, in: []string{"p@a 10.0.0.1 rs", "q@a 10.0.0.2 rs"},
		want: []string{"p@a 10.0.0.2 rs-", "q@a 10.0.0.1 rs-"},
	},
	"a dead pod's address": {
		a: []string{"q=10.0.0.1"}, in: []string{"p@a 10.0.0.1 rs", "q@a 10.0.0.2 rs"}, want: []string{"q@a 10.0.0.1 rs-"},
	},
	"a silent node's address": {
		silent: true, a: []string{"p=10.1.0.1"}, in: []string{"p@a 10.0.0.1 rs", "q@b 10.1.0.1 rs"},
		want: []string{"p@a 10.1.0.1 rs-"},
	},
	"the address of a pod of a node that lives": {
		a: []string{"p=10.1.0.1"}, in: []string{"p@a 10.0.0.1 rs", "q@b 10.1.0.1 rs"},
		want: []string{"p@a 10.1.0.1 rs-", "q@b 10.1.0.1 rs-"},
	},
	"another node's pod": {
		b: []string{"p=10.1.0.9"}, in: []string{"p@a 10.0.0.1 rs"}, want: []string{"p@a 10.0.0.1 rs-"},
	},
	"two nodes speak of one uid": {
		a: []string{"p=10.0.0.9"}, b: []string{"p!"}, in: []string{"p@a 10.0.0.1 rs"}, want: []string{"p@a 10.0.0.9 rs-"},
	},
	"silent": {
		silent: true, b: []string{"q=10.1.0.9"}, in: []string{"p@a 10.0.0.1 rs", "q@b 10.1.0.1 rs", "r@b 10.1.0.2 rs"},
		want: []string{"p@a 10.0.0.1 rs-", "q@b 10.1.0.9 -", "r@b 10.1.0.2 -"},
	},
	"another pool": {
		silent: true, a: []string{"p=10.0.0.9"}, in: []string{"p@z 10.0.0.1 rs", "q@z 10.0.0.2 rs"},
		want: []string{"p@z 10.0.0.1 rs-", "q@z 10.0.0.2 rs-"},
	},
	"of nobody": {
		silent: true, a: []string{"p=10.0.0.9"}, in: []string{"10.0.0.1 rs", "p@ 10.0.0.2 rs"},
		want: []string{"10.0.0.1 rs-", "p@ 10.0.0.2 rs-"},
	},
	"two families, this is one": {
		a: []string{"p=10.0.0.9,fd00::9"}, family: discoveryv1.AddressTypeIPv6, in: []string{"p@a fd00::1 rs"},
		want: []string{"p@a fd00::9 rs-"},
	},
	"the other": {
		a: []string{"p=10.0.0.9,fd00::9"}, in: []string{"p@a 10.0.0.1 rs"}, want: []string{"p@a 10.0.0.9 rs-"},
	},
	"no address of a family": {
		a: []string{"p=10.0.0.9"}, family: discoveryv1.AddressTypeIPv6, in: []string{"p@a fd00::1 rs"}, want: nil,
	},
	"of names": {
		a: []string{"p=10.0.0.9"}, family: discoveryv1.AddressTypeFQDN, in: []string{"p@a web.example rs"},
		want: []string{"p@a web.example rs-"},
	},
}

// of is the Set of a case.
func setOf(t *testing.T, a, b []string, silent bool) *Set {
	s := pool(t, "a", "b")
	says(t, s, "b", 1, b...)
	for now := 2 * Every; silent && now <= Silence; now += 2 * Every {
		s.Expire(now)
	}
	says(t, s, "a", 1, a...)
	return s
}

// TestSlice: what becomes of a slice, that what came is not written to, and that nothing else of it changes.
func TestSlice(t *testing.T) {
	for name, c := range overlaid {
		t.Run(name, func(t *testing.T) {
			if c.family == "" {
				c.family = discoveryv1.AddressTypeIPv4
			}
			in := sliceOf("web-1", c.family, c.in...)
			for i := range in.Endpoints {
				in.Endpoints[i].Hostname, in.Endpoints[i].Zone = ptr.To("web-0"), ptr.To("north")
				in.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "north"}}}
			}
			was := in.DeepCopy()
			out, changed := setOf(t, c.a, c.b, c.silent).Slice(in, c.publishes)
			if !reflect.DeepEqual(in, was) {
				t.Errorf("what came was changed to %v", in)
			}
			var got []string
			for _, e := range out.Endpoints {
				got = append(got, short(e))
				if ptr.Deref(e.Hostname, "") != "web-0" || ptr.Deref(e.Zone, "") != "north" || e.Hints == nil {
					t.Errorf("%s has lost its name, zone or hints", short(e))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			var before []string
			for _, e := range was.Endpoints {
				before = append(before, short(e))
			}
			if changed == slices.Equal(before, c.want) || changed == (out == in) {
				t.Errorf("changed: %t", changed)
			}
		})
	}
}

// TestEndpoints: Endpoints say the same as the slices of a Service, but for serving and terminating.
func TestEndpoints(t *testing.T) {
	for name, c := range overlaid {
		if c.family == discoveryv1.AddressTypeFQDN || c.slice {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ports := []corev1.EndpointPort{{Name: "http", Port: 80}}
			subset := func(points []discoveryv1.Endpoint) (s corev1.EndpointSubset) {
				s.Ports = ports
				for _, e := range points {
					a := corev1.EndpointAddress{IP: e.Addresses[0], NodeName: e.NodeName, TargetRef: e.TargetRef, Hostname: "web-0"}
					if *e.Conditions.Ready {
						s.Addresses = append(s.Addresses, a)
					} else {
						s.NotReadyAddresses = append(s.NotReadyAddresses, a)
					}
				}
				return s
			}
			in := &corev1.Endpoints{Subsets: []corev1.EndpointSubset{subset(sliceOf("web", c.family, c.in...).Endpoints)}}
			var want []corev1.EndpointSubset
			if len(c.want) > 0 {
				want = []corev1.EndpointSubset{subset(sliceOf("web", c.family, c.want...).Endpoints)}
			}
			was := in.DeepCopy()
			out, changed := setOf(t, c.a, c.b, c.silent).Endpoints(in, c.publishes)
			if !reflect.DeepEqual(in, was) {
				t.Errorf("what came was changed to %v", in)
			}
			if !reflect.DeepEqual(out.Subsets, want) {
				t.Errorf("%v, want %v", out.Subsets, want)
			}
			if changed == reflect.DeepEqual(was.Subsets, want) || changed == (out == in) {
				t.Errorf("changed: %t", changed)
			}
		})
	}
}

// TestUnset: a condition that is left out means what the API says.
func TestUnset(t *testing.T) {
	in := sliceOf("web", discoveryv1.AddressTypeIPv4, "p@a 10.0.0.1 rs")
	in.Endpoints[0].Conditions = discoveryv1.EndpointConditions{}
	in.Endpoints[0].TargetRef.UID = types.UID("p")
	if _, changed := setOf(t, []string{"p=10.0.0.1"}, nil, false).Slice(in, false); changed {
		t.Error("ready and serving are not taken for set")
	}
	out, _ := setOf(t, []string{"p~10.0.0.1"}, nil, false).Slice(in, false)
	if got := short(out.Endpoints[0]); got != "p@a 10.0.0.1 -" {
		t.Errorf("%s", got)
	}
}
