package pools

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/nodepool"
)

// TestLeaderHubOfTwoFamilies: Endpoints have all addresses, a slice those of one family, and the first slice has the name of the Service.
func TestLeaderHubOfTwoFamilies(t *testing.T) {
	p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}}
	shared := []nodepool.Resource{
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "services"},
	}
	p.Status.LeaderEndpoints = []nodepool.Leader{{NodeName: "a", Address: "fd00::1"}, {NodeName: "b", Address: "10.0.0.2"}}
	s, err := scopeOf(shared, func(nodepool.Resource) (bool, error) { return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	all, err := leaderHub(&view{name: p.Name, nodepool: p, scope: s})
	if err != nil || len(all) != 4 {
		t.Fatalf("%d objects, %v", len(all), err)
	}
	e := all[1].(*corev1.Endpoints)
	if len(e.Subsets) != 1 || len(e.Subsets[0].Addresses) != 2 || e.Annotations["openyurt.io/pool-scope-metadata"] != "/v1/services,discovery.k8s.io/v1/endpointslices" ||
		e.Labels[discoveryv1.LabelSkipMirror] != "true" || e.OwnerReferences[0].UID != "u" {
		t.Errorf("endpoints %+v", e)
	}
	four, six := all[2].(*discoveryv1.EndpointSlice), all[3].(*discoveryv1.EndpointSlice)
	if four.Name != "leader-hub-harbour" || four.AddressType != discoveryv1.AddressTypeIPv4 || four.Endpoints[0].Addresses[0] != "10.0.0.2" {
		t.Errorf("slice %+v", four)
	}
	if six.Name != "leader-hub-harbour-ipv6" || six.AddressType != discoveryv1.AddressTypeIPv6 || six.Labels[discoveryv1.LabelServiceName] != "leader-hub-harbour" {
		t.Errorf("slice %+v", six)
	}
}

// TestLeaderHubOfALongName: a pool may have a name that a Service may not.
func TestLeaderHubOfALongName(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", 60), "a.b"} {
		var bad *nameError
		if _, err := leaderHub(&view{name: name, nodepool: &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}}); !errors.As(err, &bad) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
