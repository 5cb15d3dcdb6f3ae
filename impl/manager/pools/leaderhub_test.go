package pools

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/pki"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestLeaderHubOfTwoFamilies: Endpoints have all addresses, a slice those of one family, and the first slice has the
// name of the Service.
func TestLeaderHubOfTwoFamilies(t *testing.T) {
	p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}}
	shared := []nodepool.Resource{
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, {Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "services"},
	}
	p.Status.LeaderEndpoints = []nodepool.Leader{{NodeName: "a", Address: "fd00::1"}, {NodeName: "b", Address: "10.0.0.2"}}
	s := scopeOf(shared, func(nodepool.Resource) (string, error) { return "Kind", nil })
	all, err := leaderHub(&view{name: p.Name, nodepool: p, scope: s})
	if err != nil || len(all) != 4 {
		t.Fatalf("%d objects, %v", len(all), err)
	}
	e := all[1].(*corev1.Endpoints)
	if len(e.Subsets) != 1 || len(e.Subsets[0].Addresses) != 2 ||
		e.Annotations["openyurt.io/pool-scope-metadata"] != "/v1/services,discovery.k8s.io/v1/endpointslices" ||
		e.Labels[discoveryv1.LabelSkipMirror] != "true" || e.OwnerReferences[0].UID != "u" {
		t.Errorf("endpoints %+v", e)
	}
	four, six := all[2].(*discoveryv1.EndpointSlice), all[3].(*discoveryv1.EndpointSlice)
	if four.Name != "leader-hub-harbour" || four.AddressType != discoveryv1.AddressTypeIPv4 ||
		four.Endpoints[0].Addresses[0] != "10.0.0.2" {
		t.Errorf("slice %+v", four)
	}
	if six.Name != "leader-hub-harbour-ipv6" || six.AddressType != discoveryv1.AddressTypeIPv6 ||
		six.Labels[discoveryv1.LabelServiceName] != "leader-hub-harbour" {
		t.Errorf("slice %+v", six)
	}
}

// TestLeaderHubOfOneThatIsRefused: a leader at an address that kube-apiserver takes in no slice is left out and told
// of, and the others are published.
func TestLeaderHubOfOneThatIsRefused(t *testing.T) {
	p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}}
	for _, bad := range []string{"169.254.9.9", "fe80::1", "fe80::1%eth0", "::ffff:127.0.0.1", "x", ""} {
		p.Status.LeaderEndpoints = []nodepool.Leader{{NodeName: "a", Address: bad}, {NodeName: "b", Address: "10.0.0.2"}}
		all, err := leaderHub(&view{name: p.Name, nodepool: p})
		if err == nil || !strings.Contains(err.Error(), "leader a") || len(all) != 3 {
			t.Fatalf("%s: %d objects, %v", bad, len(all), err)
		}
		if e := all[1].(*corev1.Endpoints); len(e.Subsets) != 1 || len(e.Subsets[0].Addresses) != 1 ||
			e.Subsets[0].Addresses[0].IP != "10.0.0.2" {
			t.Errorf("%s: endpoints %+v", bad, e)
		}
		n := &corev1.Node{}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: bad}}
		if a, ok := address(n); ok {
			t.Errorf("a node leads at %s", a)
		}
	}
}

// TestLongCondition: what a node says of itself, however long, fits into a condition of its pool: kube-apiserver takes
// 32 KiB, or none of the status.
func TestLongCondition(t *testing.T) {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: contract.CertificatesCondition, Status: corev1.ConditionTrue, Reason: contract.AuthorityEnded,
		Message: strings.Repeat("é", 100_000),
	}}
	var all []metav1.Condition
	set(&all, current([]corev1.Node{n}), time.Now())
	if m := all[0].Message; len(m) > longText || !utf8.ValidString(m) || !strings.Contains(m, "a: éé") {
		t.Errorf("%d bytes", len(m))
	}
}

// TestLeaderHubOfAnAllowance: hubs are told of the allowance that the Pool says, and of none if it says none.
func TestLeaderHubOfAnAllowance(t *testing.T) {
	p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}}
	for _, c := range []struct {
		own  *poolv1.Pool
		want string
	}{
		{nil, ""}, {&poolv1.Pool{}, ""}, {
			&poolv1.Pool{Spec: poolv1.Spec{Offline: &poolv1.Offline{CertificateAllowance: "720h"}}}, "720h",
		},
	} {
		all, err := leaderHub(&view{name: p.Name, nodepool: p, own: c.own})
		if err != nil {
			t.Fatal(err)
		}
		e := all[1].(*corev1.Endpoints)
		if is, there := e.Annotations[contract.LeaderHubAllowance]; is != c.want || there != (c.want != "") {
			t.Errorf("%+v: %v", c.own, e.Annotations)
		}
		was := e.DeepCopy()
		was.Annotations[contract.LeaderHubAllowance] = "1h"
		if replaced(was, e); was.Annotations[contract.LeaderHubAllowance] != c.want {
			t.Errorf("what was told before stays: %v", was.Annotations)
		}
	}
}

// TestLeaderHubOfImages: hubs are told how images are shared, in words that they accept, and of nothing if all are.
func TestLeaderHubOfImages(t *testing.T) {
	p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}}
	registries := func(all ...string) (out []poolv1.ImageRegistry) {
		for i := 0; i < len(all); i += 2 {
			out = append(out, poolv1.ImageRegistry{Host: all[i], Sharing: all[i+1]})
		}
		return out
	}
	var most []string
	for i := range 32 {
		most = append(most, fmt.Sprintf("%s%02d.example:5000", strings.Repeat("r", 238), i), poolv1.SharingDisabled)
	}
	for _, c := range []struct {
		own  *poolv1.Images
		want string
	}{
		{nil, ""}, {&poolv1.Images{}, ""}, {&poolv1.Images{Sharing: poolv1.SharingEnabled}, ""},
		{&poolv1.Images{Sharing: poolv1.SharingDisabled}, "*=disabled"},
		{&poolv1.Images{Sharing: poolv1.SharingJudged}, "*=judged"},
		{
			&poolv1.Images{
				Sharing: poolv1.SharingDisabled, Registries: registries("docker.io", poolv1.SharingEnabled,
					"[fd00:0::7]:5000", poolv1.SharingDisabled, "a.example", poolv1.SharingJudged),
			},
			"*=disabled,[fd00::7]:5000=disabled,a.example=judged,docker.io=enabled",
		},
		{ // names of one registry
			&poolv1.Images{Registries: registries("a.example", poolv1.SharingEnabled, "a.example:443", poolv1.SharingDisabled,
				"docker.io", poolv1.SharingJudged, "registry-1.docker.io", poolv1.SharingEnabled)},
			"a.example=disabled,docker.io=judged",
		},
		{&poolv1.Images{Registries: registries("a.example", "Later")}, "a.example=disabled"},
		{&poolv1.Images{Sharing: poolv1.SharingJudged, Registries: registries(most...)}, "many"},
	} {
		all, err := leaderHub(&view{name: p.Name, nodepool: p, own: &poolv1.Pool{Spec: poolv1.Spec{Images: c.own}}})
		if err != nil {
			t.Fatal(err)
		}
		e := all[1].(*corev1.Endpoints)
		is, there := e.Annotations[contract.LeaderHubImages]
		if is != c.want && c.want != "many" || there != (c.want != "") {
			t.Errorf("%+v: %q, want %q", c.own, is, c.want)
		}
		if told, err := directory.Parse(p.Name, e, 7); err != nil || c.want == "many" && len(told.Images) != 33 {
			t.Errorf("%+v is not signed: %v", c.own, err)
		}
		was := e.DeepCopy()
		was.Annotations[contract.LeaderHubImages] = "*=enabled"
		if replaced(was, e); was.Annotations[contract.LeaderHubImages] != is {
			t.Errorf("what was told before stays: %v", was.Annotations)
		}
	}
}

// gateOf is a gate with an authority of its own.
func gateOf(t *testing.T, server string) directory.Gate {
	t.Helper()
	a, err := pki.NewPoolAuthority("gate", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return directory.Gate{Server: server, Authorities: string(a.CertPEM())}
}

// TestLeaderHubOfAGate: hubs are told of the gate in words that they accept, and of none if there is none.
func TestLeaderHubOfAGate(t *testing.T) {
	p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}}
	for _, gate := range []directory.Gate{{}, gateOf(t, "https://[fd00::7]:30273")} {
		all, err := leaderHub(&view{name: p.Name, nodepool: p, gate: gate})
		if err != nil {
			t.Fatal(err)
		}
		e := all[1].(*corev1.Endpoints)
		if told, err := directory.Parse(p.Name, e, 7); err != nil || told.Gate != gate {
			t.Errorf("%+v is told as %+v: %v", gate, told.Gate, err)
		}
		was := e.DeepCopy()
		was.Annotations[contract.LeaderHubGate], was.Annotations[contract.LeaderHubGateCA] = "https://10.6.6.6:1", "PEM"
		replaced(was, e)
		for _, name := range []string{contract.LeaderHubGate, contract.LeaderHubGateCA} {
			want, says := e.Annotations[name]
			if is, there := was.Annotations[name]; says != (gate != directory.Gate{}) || is != want || there != says {
				t.Errorf("%+v: %s is %q, want %q", gate, name, is, want)
			}
		}
	}
}

// TestReplaced: what somebody edited of leader-hub-<pool> is put right, and what he added beside stays. What cannot be
// changed takes another object.
func TestReplaced(t *testing.T) {
	p := &nodepool.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "harbour", UID: "u"}, Spec: nodepool.Spec{InterConnectivity: true},
	}
	p.Status.LeaderEndpoints = []nodepool.Leader{{NodeName: "b", Address: "10.0.0.2"}}
	all, err := leaderHub(&view{name: p.Name, nodepool: p})
	if err != nil || len(all) != 3 {
		t.Fatalf("%d objects, %v", len(all), err)
	}
	for _, want := range all {
		edited := want.DeepCopyObject().(client.Object)
		edited.SetAnnotations(map[string]string{
			"theirs": "stays", contract.LeaderHubConnectivity: "false", contract.LeaderHubMode: contract.ModeLeaderHubs,
			contract.LeaderHubCoordinators: "https://10.6.6.6:10270",
		})
		edited.SetOwnerReferences(nil)
		switch o := edited.(type) {
		case *corev1.Service:
			o.Spec.Selector, o.Spec.Ports[0].Port = map[string]string{"app": "theirs"}, 1
			want.(*corev1.Service).Spec.Type = corev1.ServiceTypeClusterIP // the API's default
		case *corev1.Endpoints:
			o.Subsets[0].Addresses[0].IP = "10.6.6.6"
		case *discoveryv1.EndpointSlice:
			o.Endpoints[0].Addresses[0] = "10.6.6.6"
		}
		if replaced(edited, want) {
			t.Errorf("%T: another one is to be made", want)
		}
		if a := edited.GetAnnotations(); a["theirs"] != "stays" {
			t.Errorf("%T: what is theirs is gone: %v", want, a)
		} else {
			delete(a, "theirs")
		}
		if !equality.Semantic.DeepEqual(edited, want) {
			t.Errorf("%T is\n%+v, want\n%+v", want, edited, want)
		}
	}
	service, slice := all[0].DeepCopyObject().(*corev1.Service), all[2].DeepCopyObject().(*discoveryv1.EndpointSlice)
	service.Spec.ClusterIP, slice.AddressType = "10.96.0.7", discoveryv1.AddressTypeIPv6
	if !replaced(service, all[0]) || !replaced(slice, all[2]) {
		t.Error("an address of a Service, or the family of a slice, cannot be changed")
	}
}

// TestLeaderHubOfALongName: a pool may have a name that a Service may not.
func TestLeaderHubOfALongName(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", 60), "a.b"} {
		var bad *nameError
		if _, err := leaderHub(&view{
			name: name, nodepool: &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}},
		}); !errors.As(err, &bad) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
