package directory

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// object is what weir-manager writes.
func object(change func(o *corev1.Endpoints)) *corev1.Endpoints {
	node := func(name string) *string { return &name }
	o := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "leader-hub-harbour", Annotations: map[string]string{
			contract.LeaderHubMode: "coordinator", contract.LeaderHubConnectivity: "true",
			contract.LeaderHubCoordinators: "https://10.0.0.7:10270, https://[fd00::7]:10270",
			contract.LeaderHubReplicas:     "1-ab/edge-1/10.0.0.7,2-ab/edge-2/fd00::7",
			contract.LeaderHubScope:        "discovery.k8s.io/v1/endpointslices,/v1/endpoints,example.com/v1/widgets=Widget",
			contract.LeaderHubAllowance:    "720h",
			contract.LeaderHubImages:       "secret.example=judged, *=enabled, [fd00::7]:5000=disabled",
		}},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{
				{IP: "10.0.0.8", NodeName: node("edge-2")}, {IP: "10.0.0.7", NodeName: node("edge-1")},
				{IP: "fd00::7", NodeName: node("edge-1")},
			},
			Ports: []corev1.EndpointPort{{Name: "pool", Port: 10269}},
		}},
	}
	if change != nil {
		change(o)
	}
	return o
}

func TestParse(t *testing.T) {
	got, err := Parse("harbour", object(nil), 42)
	if err != nil {
		t.Fatal(err)
	}
	want := Entry{
		Pool: "harbour", Version: 42, Mode: "coordinator", Connected: true,
		Leaders: []Leader{
			{"edge-1", []netip.AddrPort{netip.MustParseAddrPort("10.0.0.7:10269"), netip.MustParseAddrPort("[fd00::7]:10269")}},
			{"edge-2", []netip.AddrPort{netip.MustParseAddrPort("10.0.0.8:10269")}},
		},
		Coordinators: []string{"https://10.0.0.7:10270", "https://[fd00::7]:10270"},
		Replicas: []Replica{
			{"1-ab", "edge-1", netip.MustParseAddr("10.0.0.7")}, {"2-ab", "edge-2", netip.MustParseAddr("fd00::7")},
		},
		Scope: []Shared{
			{"", "v1", "endpoints", ""}, {"discovery.k8s.io", "v1", "endpointslices", ""},
			{"example.com", "v1", "widgets", "Widget"},
		},
		Allowance: "720h",
		Images: ImageRules{
			{"*", contract.ImagesEnabled}, {"[fd00::7]:5000", contract.ImagesDisabled},
			{"secret.example", contract.ImagesJudged},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	text, _ := json.Marshal(got)
	if again, err := decode("harbour", text); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("inside the pool: %+v, %v", again, err)
	}
	if d, usual := got.OfflineAllowance(), (Entry{}).OfflineAllowance(); d != 720*time.Hour ||
		usual != contract.OfflineAllowance {
		t.Errorf("an allowance of %v, and without one %v", d, usual)
	}
	if u := got.URLs(); len(u) != 2 || u[1].Host != "[fd00::7]:10270" {
		t.Errorf("%v", u)
	}
}

// TestOpenYurts: an object that another controller wrote tells less, and that is no error.
func TestOpenYurts(t *testing.T) {
	o := object(func(o *corev1.Endpoints) {
		o.Annotations = nil
		o.Subsets[0].Ports[0].Name = ""
	})
	got, err := Parse("harbour", o, 7)
	if err != nil || got.Mode != "" || got.Scope != nil || got.Coordinators != nil || len(got.Leaders) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	o.Subsets = nil
	if got, err = Parse("harbour", o, 7); err != nil || len(got.Leaders) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRefused: each thing that is invalid is one line that names field, value and what is wanted.
func TestRefused(t *testing.T) {
	annotate := func(name, value string) func(o *corev1.Endpoints) {
		return func(o *corev1.Endpoints) { o.Annotations[name] = value }
	}
	leader := func(change func(a *corev1.EndpointAddress)) func(o *corev1.Endpoints) {
		return func(o *corev1.Endpoints) { change(&o.Subsets[0].Addresses[0]) }
	}
	for about, test := range map[string]struct {
		change func(o *corev1.Endpoints)
		want   string
	}{
		"another name": {func(o *corev1.Endpoints) { o.Name = "leader-hub-quay" }, `it is "kube-system/leader-hub-quay"`},
		"mode": {
			annotate(contract.LeaderHubMode, "both"), `weir.dev/mode is "both", want coordinator or leader-hubs`,
		},
		"connectivity": {
			annotate(contract.LeaderHubConnectivity, "yes"), `openyurt.io/interconnectivity is "yes", want true or false`,
		},
		"no duration": {
			annotate(contract.LeaderHubAllowance, "soon"),
			`weir.dev/offline-allowance is "soon", want a duration, 0s to 2160h0m0s`,
		},
		"a long time": {
			annotate(contract.LeaderHubAllowance, "2161h"), `weir.dev/offline-allowance is "2161h", want a duration`,
		},
		"a time before": {
			annotate(contract.LeaderHubAllowance, "-1h"), `weir.dev/offline-allowance is "-1h", want a duration`,
		},
		"no sharing": {
			annotate(contract.LeaderHubImages, "docker.io"),
			`weir.dev/images has "docker.io=", want enabled, judged or disabled`,
		},
		"no registry": {annotate(contract.LeaderHubImages, "=judged"), "want <host>[:<port>]=<sharing>, or *"},
		"a repository": {
			annotate(contract.LeaderHubImages, "docker.io/library=judged"), "want <host>[:<port>]=<sharing>, or *",
		},
		"a long registry": {
			annotate(contract.LeaderHubImages, strings.Repeat("a", maxRegistry+1)+"=judged"), "want <host>[:<port>]=<sharing>",
		},
		"a registry twice": {
			annotate(contract.LeaderHubImages, "a.example=judged,a.example=enabled"),
			`has "a.example=enabled", want each registry once`,
		},
		"another name of it": {
			annotate(contract.LeaderHubImages, "a.example:443=judged"), "want the registry as a.example",
		},
		"many registries": {
			annotate(contract.LeaderHubImages, registries(MaxImages+1)), "weir.dev/images has 34 registries, want 33 at most",
		},
		"plain HTTP": {
			annotate(contract.LeaderHubCoordinators, "http://10.0.0.7:10270"),
			`weir.dev/coordinators has "http://10.0.0.7:10270", want a URL of the form https://host:port`,
		},
		"a path": {annotate(contract.LeaderHubCoordinators, "https://a/b"), "want a URL of the form"},
		"a user": {annotate(contract.LeaderHubCoordinators, "https://u@a"), "want a URL of the form"},
		"no address": {
			annotate(contract.LeaderHubReplicas, "1-ab/edge-1"),
			`weir.dev/coordinator-replicas has "1-ab/edge-1", want <placement>/<node>/<IP address>`,
		},
		"any address": {
			annotate(contract.LeaderHubReplicas, "1-ab/edge-1/0.0.0.0"), "want <placement>/<node>/<IP address>",
		},
		"no placement": {
			annotate(contract.LeaderHubReplicas, "/edge-1/10.0.0.7"), "want <placement>/<node>/<IP address>",
		},
		"two on one node": {
			annotate(contract.LeaderHubReplicas, "1/edge-1/10.0.0.7,2/edge-1/10.0.0.8"), `has the "node edge-1" twice`,
		},
		"many replicas": {
			annotate(contract.LeaderHubReplicas, strings.Repeat("1/a/10.0.0.7,", MaxReplicas)+"1/a/10.0.0.7"),
			"has 10 replicas, want 9 at most",
		},
		"empty URL": {
			annotate(contract.LeaderHubCoordinators, "https://a,"), `weir.dev/coordinators has "", want a URL`,
		},
		"a replica twice": {
			annotate(contract.LeaderHubCoordinators, "https://a:1,https://a:1"), "twice, want each replica once",
		},
		"many URLs": {
			annotate(contract.LeaderHubCoordinators, urls(MaxCoordinators+1)), "has 10 URLs, want 9 at most",
		},
		"long URL": {
			annotate(contract.LeaderHubCoordinators, "https://"+strings.Repeat("a", maxURL)), "want a URL of the form",
		},
		"long annotation": {
			annotate(contract.LeaderHubScope, strings.Repeat("x", maxAnnotation+1)), "has 16385 bytes, want 16384 at most",
		},
		"Secrets": {
			annotate(contract.LeaderHubScope, "/v1/endpoints,/v1/secrets"),
			`openyurt.io/pool-scope-metadata has "/v1/secrets", want no Secrets`,
		},
		"two versions": {
			annotate(contract.LeaderHubScope, "example.com/v1/widgets,example.com/v2/widgets"),
			`has "example.com/v2/widgets", want one version of it: it is there as v1 too`,
		},
		"one twice":        {annotate(contract.LeaderHubScope, "/v1/pods,/v1/pods"), "want each resource once"},
		"Leases":           {annotate(contract.LeaderHubScope, "coordination.k8s.io/v1/leases"), "is the coordinator's own"},
		"no version of it": {annotate(contract.LeaderHubScope, "pods"), `has "pods", want group/version/resource`},
		"subresource":      {annotate(contract.LeaderHubScope, "/v1/pods/status"), "want group/version/resource"},
		"group":            {annotate(contract.LeaderHubScope, "A_b/v1/pods"), "want group/version/resource"},
		"kind":             {annotate(contract.LeaderHubScope, "a.b/v1/pods=P-_"), `want a kind behind it and not "P-_"`},
		"many resources":   {annotate(contract.LeaderHubScope, resources(MaxScope+1)), "has 65 resources, want 64 at most"},
		"place: address": {
			leader(func(a *corev1.EndpointAddress) { a.IP = "edge-2" }),
			`address of a leader hub is "edge-2", want an IP address`,
		},
		"place: any": {
			leader(func(a *corev1.EndpointAddress) { a.IP = "0.0.0.0" }),
			"address of leader hub edge-2 is 0.0.0.0:10269, want the IP address of a node",
		},
		"a zone": {
			leader(func(a *corev1.EndpointAddress) { a.IP = "fe80::1%eth0" }), "want the IP address of a node",
		},
		"no node": {
			leader(func(a *corev1.EndpointAddress) { a.NodeName = nil }), "address 10.0.0.8 of a leader hub has no nodeName",
		},
		"node name": {
			leader(func(a *corev1.EndpointAddress) { *a.NodeName = "x/y" }), `node name of a leader hub is "x/y"`,
		},
		"one's address": {
			leader(func(a *corev1.EndpointAddress) { a.IP = "10.0.0.7" }), "is of leader hub edge-1 and of edge-2",
		},
		"no port": {func(o *corev1.Endpoints) { o.Subsets[0].Ports = nil }, "0 ports of leader hubs, want one"},
		"port 0": {
			func(o *corev1.Endpoints) { o.Subsets[0].Ports[0].Port = 0 }, "1 ports of leader hubs, want one",
		},
		"many leaders": {func(o *corev1.Endpoints) {
			o.Subsets[0].Addresses = nil
			for i := range MaxLeaders + 1 {
				n := fmt.Sprint("n", i)
				o.Subsets[0].Addresses = append(o.Subsets[0].Addresses,
					corev1.EndpointAddress{IP: fmt.Sprint("10.0.1.", i), NodeName: &n})
			}
		}, "65 leader hubs, want 64 at most"},
	} {
		_, err := Parse("harbour", object(test.change), 42)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") ||
			len(err.Error()) > 500 {
			t.Errorf("%s: %v, want %s", about, err, test.want)
		}
	}
	for about, text := range map[string]string{
		"of another pool": `{"pool":"quay","version":1}`, "without a version": `{"pool":"harbour"}`, "no JSON": "x",
		"out of order": `{"pool":"harbour","version":1,"scope":[{"version":"v1","resource":"pods"},{"version":"v1",` +
			`"resource":"nodes"}]}`,
		"registries out of order": `{"pool":"harbour","version":1,"images":[{"registry":"b","sharing":"judged"},` +
			`{"registry":"a","sharing":"judged"}]}`,
		"bad address": `{"pool":"harbour","version":1,"leaders":[{"node":"a","addresses":["1.2.3.4"]}]}`,
	} {
		if e, err := decode("harbour", []byte(text)); err == nil {
			t.Errorf("%s: %+v", about, e)
		}
	}
}

func urls(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("https://10.0.0.%d:10270", i+1))
	}
	return strings.Join(all, ",")
}

func registries(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("r%d.example=judged", i))
	}
	return strings.Join(all, ",")
}

func resources(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("example.com/v1/r%d=R", i))
	}
	return strings.Join(all, ",")
}

// FuzzParse: whatever stands in the object, what is taken from it is within its bounds, and is the same inside the
// pool.
func FuzzParse(f *testing.F) {
	for _, o := range []*corev1.Endpoints{
		object(nil), object(func(o *corev1.Endpoints) { o.Annotations, o.Subsets = nil, nil }),
		gated("https://gate.example:10273", "# a\n"+string(newPool().authorities[0].CertPEM()), "2"),
		reached("fd00:1::/64:8080, 10.244.0.0/16:8000-8100,10.0.9.7/32"),
	} {
		text, _ := json.Marshal(o)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var o corev1.Endpoints
		if json.Unmarshal(text, &o) != nil {
			return
		}
		e, err := Parse("harbour", &o, 42)
		if err != nil {
			return
		}
		if len(e.Leaders) > MaxLeaders || len(e.Scope) > MaxScope || len(e.Coordinators) > MaxCoordinators ||
			len(e.Images) > MaxImages || len(e.Reach) > MaxReach ||
			len(e.URLs()) != len(e.Coordinators) {
			t.Errorf("%+v", e)
		}
		told, err := json.Marshal(e)
		if err != nil || len(told) > MaxText {
			t.Fatalf("%d bytes, %v", len(told), err)
		}
		if again, err := decode("harbour", told); err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%+v\nagain %+v, %v", e, again, err)
		}
	})
}

// FuzzDecode: what somebody of the pool tells ends nobody.
func FuzzDecode(f *testing.F) {
	for _, o := range []*corev1.Endpoints{object(nil), reached("fd00:1::/64:8080,10.0.9.7/32")} {
		e, _ := Parse("harbour", o, 42)
		text, _ := json.Marshal(e)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if e, err := decode("harbour", text); err == nil &&
			(e.Pool != "harbour" || e.Version == 0 || e.check("harbour") != nil) {
			t.Errorf("%+v", e)
		}
	})
}
