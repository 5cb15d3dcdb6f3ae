package gate

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/impl/testkit"
)

func ready() bool { return true }

// known are places of Nodes and of what is told, both of which have been listed.
func known(nodes []*corev1.Node, told ...*metav1.PartialObjectMetadata) *places {
	x := &places{
		hosts: map[string]map[string]reverse.Place{}, named: map[string][]reverse.Span{},
		own: map[string][]netip.Prefix{}, have: [3]func() bool{ready, ready, ready},
	}
	for _, n := range nodes {
		x.node(nil, n)
	}
	for _, m := range told {
		x.tell(nil, m)
	}
	return x
}

// at is a place as text: "<pool> <node> <address>", or why it cannot be said.
func at(x *places, host string) string {
	in, err := x.of(host)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case in == (reverse.Place{}):
		return ""
	}
	return in.Pool + " " + in.Node + " " + in.Addr.String()
}

// TestPlaces: a host is of the node that has it as an InternalIP, as its name or as its Hostname, and else of the pool
// whose spec.reach has it.
func TestPlaces(t *testing.T) {
	x := known([]*corev1.Node{
		nodeOf("harbour", "edge-1", "Hostname crane", "InternalIP 10.0.0.7", "InternalIP fd00::7", "ExternalIP 192.0.2.7"),
		nodeOf("mill", "edge-2", "InternalIP 10.0.0.8", "InternalDNS edge-2.mill", "Hostname edge-2"),
		nodeOf("mill", "edge-3", "InternalIP 10.0.0.9", "InternalIP here"),
		nodeOf("mill", "edge-4", "Hostname wheel"),
		nodeOf("", "cloud-1", "InternalIP 10.1.0.1"),
		nodeOf("yard", "edge-5", "InternalIP 10.0.0.9", "Hostname crane-5"),
		nodeOf("yard", "edge-6", "InternalIP 10.244.3.4"),
	},
		toldOf("leader-hub-harbour", "10.244.0.0/16:8080,fd00:1::/64"), toldOf("leader-hub-mill", "10.96.0.0/12"),
		toldOf("leader-hub-yard", "10.97.0.0/16:80,10.98.0.1/32"), toldOf("leader-hub-none", ""),
		toldOf("leader-hub-torn", "10.99.0.0/33,10.60.0.0/16,10.61.0.0"), toldOf("kube-dns", "10.50.0.0/16"),
	)
	for host, want := range map[string]string{
		"10.0.0.7":           "harbour edge-1 10.0.0.7",
		"fd00::7":            "harbour edge-1 fd00::7",
		"fd00:0:0:0:0:0:0:7": "harbour edge-1 fd00::7",
		"edge-1":             "harbour edge-1 10.0.0.7",
		"crane":              "harbour edge-1 10.0.0.7",
		"192.0.2.7":          "",
		"edge-2":             "mill edge-2 10.0.0.8",
		"edge-2.mill":        "",
		"here":               "",
		"edge-4":             "",
		"wheel":              "",
		"10.1.0.1":           "",
		"cloud-1":            "",
		"kubernetes.default": "",
		"edge-3":             "mill edge-3 10.0.0.9",
		"crane-5":            "yard edge-5 10.0.0.9",
		"10.0.0.9":           "error: 10.0.0.9 is of node edge-3 of pool mill and of node edge-5 of pool yard: want the name",
		"10.244.3.3":         "harbour  10.244.3.3",
		"10.244.3.4":         "yard edge-6 10.244.3.4", // a node comes before spec.reach
		"fd00:1::5":          "harbour  fd00:1::5",
		"10.96.0.1":          "mill  10.96.0.1",
		"10.97.0.1":          "error: 10.97.0.1 is in spec.reach of pools mill and yard: only one of them may name it",
		"10.50.0.1":          "",
		"10.60.0.1":          "torn  10.60.0.1",
		"10.61.0.0":          "",
		"::ffff:10.0.0.7":    "",
	} {
		if got := at(x, host); got != want && (!strings.HasPrefix(want, "error: ") || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

// TestOwn: what is of the cloud is of no pool: neither spec.reach nor a kubelet that writes the address into its Node
// changes that, and a name of a cloud's node is not taken either.
func TestOwn(t *testing.T) {
	x := known([]*corev1.Node{
		nodeOf("", "cloud-1", "InternalIP 10.1.0.1", "Hostname cloud-1"),
		nodeOf("mill", "edge-2", "InternalIP 10.0.0.8", "InternalIP 10.1.0.1", "InternalIP 10.96.0.10", "Hostname cloud-1"),
	}, toldOf("leader-hub-mill", "0.0.0.0/0"))
	services := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}}
	services.Spec.CIDRs = []string{"10.96.0.0/16", "fd00:10:96::/112", "x"}
	x.service(nil, services)
	for host, want := range map[string]string{
		"10.1.0.1": "", "cloud-1": "", "10.96.0.1": "", "10.96.0.10": "", "fd00:10:96::1": "",
		"10.0.0.8": "mill edge-2 10.0.0.8", "10.97.0.1": "mill  10.97.0.1",
	} {
		if got := at(x, host); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	x.service(services, nil)
	if got := at(x, "10.96.0.1"); got != "mill  10.96.0.1" {
		t.Errorf("once the ServiceCIDR is gone: %q", got)
	}
}

// TestOtherEndpoints: Endpoints that only have the name of a pool say nothing of it when they change or go.
func TestOtherEndpoints(t *testing.T) {
	x := known(nil, toldOf("leader-hub-harbour", "10.244.0.0/16:8080"))
	x.tell(nil, toldOf("harbour", ""))
	x.tell(toldOf("harbour", ""), toldOf("harbour", ""))
	x.tell(toldOf("harbour", ""), nil)
	if got := at(x, "10.244.0.1"); got != "harbour  10.244.0.1" {
		t.Errorf("%q", got)
	}
}

// TestListedWithoutTheLock: the gate holds no lock that events wait for when it asks an informer whether it has listed.
// The informer may hold a lock of its own while it handles an event.
func TestListedWithoutTheLock(t *testing.T) {
	x := known([]*corev1.Node{nodeOf("harbour", "edge-1", "InternalIP 10.0.0.7")})
	x.have[1] = func() bool {
		free := x.mu.TryLock()
		if free {
			x.mu.Unlock()
		} else {
			t.Error("an event that is handled now waits for ever")
		}
		return true
	}
	if got := at(x, "edge-1"); got != "harbour edge-1 10.0.0.7" {
		t.Error(got)
	}
}

// TestNameComesFirst: a node that says of itself that its Hostname is the name of another node does not get what is for
// that one, nor does it keep anybody from it.
func TestNameComesFirst(t *testing.T) {
	x := known([]*corev1.Node{
		nodeOf("harbour", "edge-1", "InternalIP 10.0.0.7"),
		nodeOf("mill", "edge-2", "InternalIP 10.0.0.8", "Hostname edge-1"),
		nodeOf("mill", "edge-3", "InternalIP 10.0.0.9", "Hostname 10.0.0.7"),
	})
	if got := at(x, "edge-1"); got != "harbour edge-1 10.0.0.7" {
		t.Error(got)
	}
	if got := at(x, "10.0.0.7"); got != "harbour edge-1 10.0.0.7" {
		t.Error(got)
	}
	x.node(nodeOf("harbour", "edge-1", "InternalIP 10.0.0.7"), nil)
	if got := at(x, "edge-1"); got != "mill edge-2 10.0.0.8" {
		t.Error(got)
	}
}

// TestLess: of what is followed only what says where it is stays in memory.
func TestLess(t *testing.T) {
	n := nodeOf("harbour", "edge-1", "InternalIP 10.0.0.7")
	n.ResourceVersion, n.Annotations, n.Labels["other"] = "7", map[string]string{"a": "b"}, "x"
	n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	o, err := lessNode(n)
	check(t, err)
	less := o.(*corev1.Node)
	if less.Annotations != nil || len(less.Labels) != 1 || less.Status.Images != nil || less.ResourceVersion != "7" ||
		len(hostsOf(less)) != len(hostsOf(n)) {
		t.Errorf("%+v", less)
	}
	m := toldOf("leader-hub-harbour", "10.244.0.0/16")
	m.Annotations["weir.dev/other"] = "x"
	if o, err = lessTold(m); err != nil || len(o.(*metav1.PartialObjectMetadata).Annotations) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, f := range []func(any) (any, error){lessNode, lessTold} {
		if o, err := f("x"); o != "x" || err != nil {
			t.Errorf("%v, %v", o, err)
		}
	}
}

// TestFollowed: what changes at kube-apiserver changes here, and nothing is said before both have been listed.
func TestFollowed(t *testing.T) {
	k := newKube(t)
	k.set("nodes", nodeOf("harbour", "edge-1", "InternalIP 10.0.0.7"))
	k.set("endpoints", toldOf("leader-hub-harbour", "10.244.0.0/16:8080"))
	k.show("endpoints", false)
	x, err := newPlaces(&rest.Config{Host: k.URL})
	check(t, err)
	unknown := "error: this gate does not know yet which nodes there are: try again"
	if got := at(x, "edge-1"); got != unknown {
		t.Errorf("before it runs: %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	becomes := func(host, want string) {
		t.Helper()
		testkit.Until(t, patience, host+" to be "+want, func() bool { return at(x, host) == want })
	}
	testkit.Until(t, patience, "nodes", func() bool {
		x.mu.RLock()
		defer x.mu.RUnlock()
		return len(x.hosts) > 0
	})
	for _, host := range []string{"edge-1", "10.0.0.7", "10.0.0.99", "webhook.default.svc"} {
		if got := at(x, host); got != unknown {
			t.Errorf("%s while spec.reach is not known: %q", host, got)
		}
	}
	k.show("endpoints", true)
	becomes("edge-1", "harbour edge-1 10.0.0.7")
	becomes("10.244.0.1", "harbour  10.244.0.1")
	k.set("nodes", nodeOf("harbour", "edge-1", "InternalIP 10.0.0.17"))
	becomes("10.0.0.17", "harbour edge-1 10.0.0.17")
	becomes("10.0.0.7", "")
	k.set("nodes", nodeOf("mill", "edge-1", "InternalIP 10.0.0.17"))
	becomes("10.0.0.17", "mill edge-1 10.0.0.17")
	k.set("nodes", nodeOf("harbour", "edge-2", "InternalIP 10.0.0.17"))
	testkit.Until(t, patience, "two to have it", func() bool { return strings.HasPrefix(at(x, "10.0.0.17"), "error: ") })
	becomes("edge-2", "harbour edge-2 10.0.0.17")
	k.remove("nodes", "edge-1")
	becomes("10.0.0.17", "harbour edge-2 10.0.0.17")
	becomes("edge-1", "")
	k.set("endpoints", toldOf("leader-hub-harbour", "10.245.0.0/16"))
	becomes("10.245.0.1", "harbour  10.245.0.1")
	becomes("10.244.0.1", "")
	k.remove("endpoints", "leader-hub-harbour")
	becomes("10.245.0.1", "")
	if in, err := x.of("10.0.0.17"); err != nil || in.Addr != netip.MustParseAddr("10.0.0.17") {
		t.Errorf("%+v, %v", in, err)
	}
}
