package helm

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"maps"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

const (
	gateTemplate    = "weir/templates/gate.yaml"
	accessTemplate  = "weir/templates/gate-access.yaml"
	managerTemplate = "weir/templates/manager.yaml"
)

// TestNoGate: a gate that is off changes nothing, whatever else is said of it. Neither do values of before, which know
// none: helm upgrade --reuse-values.
func TestNoGate(t *testing.T) {
	usual, err := all(t, load(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if is := usual[gateTemplate] + usual[accessTemplate]; strings.TrimSpace(is) != "" {
		t.Errorf("a gate is rendered:\n%s", is)
	}
	before := load(t)
	delete(before.Values, "gate")
	for name, c := range map[string]func() (map[string]string, error){
		"off": func() (map[string]string, error) {
			return all(t, load(t), []byte("gate: {enabled: false, address: \"gate:1\", replicas: 5}"))
		},
		"values of before": func() (map[string]string, error) { return all(t, before, nil) },
	} {
		if got, err := c(); err != nil || !maps.Equal(got, usual) {
			t.Errorf("%s: the chart renders something else: %v", name, err)
		}
	}
}

// TestGatePods: the gate serves no pods, and has no grants for them, unless it is told to. Values of before, which know
// none, have a gate that serves none.
func TestGatePods(t *testing.T) {
	const on = "gate: {enabled: true, address: \"gate:1\", tls: {existingSecret: theirs}"
	parts := []string{
		"weir:gate:pods", "weir:gate:kubelets", "nodes/proxy", "--pods", "--kubelet-client", "/etc/weir/kubelet",
	}
	before := load(t)
	delete(before.Values["gate"].(map[string]any), "pods")
	for name, c := range map[string]struct {
		of     *chart.Chart
		values string
		want   bool
	}{
		"usual": {load(t), on + "}", false}, "off": {load(t), on + ", pods: {enabled: false}}", false},
		"no gate":          {load(t), "gate: {enabled: false, pods: {enabled: true}}", false},
		"values of before": {before, on + "}", false},
		"on":               {load(t), on + ", wayIn: {enabled: true}, pods: {enabled: true}}", true},
	} {
		texts, err := all(t, c.of, []byte(c.values))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range parts {
			if got := strings.Contains(texts[gateTemplate]+texts[accessTemplate], part); got != c.want {
				t.Errorf("%s: %s is there: %v, want %v", name, part, got, c.want)
			}
		}
		if strings.Contains(texts[gateTemplate], "--kubelet-certificate-authority") {
			t.Errorf("%s: kubelets are verified, and nobody asked for it", name)
		}
	}
}

// TestGatePodsWantWay: pods are reached by the way in, and helm says so.
func TestGatePodsWantWay(t *testing.T) {
	_, err := all(t, load(t), []byte("gate: {enabled: true, address: \"gate:1\", pods: {enabled: true}}"))
	if err == nil || !strings.Contains(err.Error(), "gate.wayIn.enabled is not") {
		t.Errorf("%v", err)
	}
}

// TestGateAddress: a gate needs an address, with a port and without a scheme, and helm says so.
func TestGateAddress(t *testing.T) {
	for address, want := range map[string]string{
		"":             "gate.address is empty: want the host:port",
		"gate.example": "/gate/address", "https://gate.example:1": "/gate/address", "gate.example:0": "/gate/address",
		"gate.example:1/": "/gate/address", "fd00::7:1]": "/gate/address",
	} {
		if _, err := all(t, load(t), []byte("gate: {enabled: true, address: \""+address+"\"}")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", address, err, want)
		}
	}
}

// TestGateCertificate: the certificate that the chart makes is for the host of the address, of whatever form, and is
// verified by the authority that weir-manager reads. A Secret of one's own is taken as it is.
func TestGateCertificate(t *testing.T) {
	for address, host := range map[string]string{
		"gate.example:443": "gate.example", "203.0.113.10:30273": "203.0.113.10", "[fd00::7]:30273": "fd00::7",
	} {
		texts, err := all(t, load(t), []byte("gate: {enabled: true, address: \""+address+"\"}"))
		if err != nil {
			t.Fatal(err)
		}
		secret := secretOf(t, texts[gateTemplate])
		pair, err := tls.X509KeyPair(secret["tls.crt"], secret["tls.key"])
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(secret["ca.crt"]) || strings.Contains(string(secret["ca.crt"]), "PRIVATE") {
			t.Fatalf("%s: the authority is %s", address, secret["ca.crt"])
		}
		for _, name := range []string{host, "weir-gate.kube-system.svc"} {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
				t.Errorf("%s: %v", address, err)
			}
		}
		if want := "--gate=https://" + address + `","--gate-ca-file=/etc/weir/gate/ca.crt"`; !strings.Contains(
			texts[managerTemplate], want) {
			t.Errorf("weir-manager has no %s:\n%s", want, texts[managerTemplate])
		}
		if strings.Contains(texts[managerTemplate], "tls.key") {
			t.Errorf("weir-manager has the key:\n%s", texts[managerTemplate])
		}
	}
	texts, err := all(t, load(t), []byte("gate: {enabled: true, address: \"gate:1\", tls: {existingSecret: theirs}}"))
	if err != nil {
		t.Fatal(err)
	}
	if secretOf(t, texts[gateTemplate]) != nil || strings.Count(texts[gateTemplate]+texts[managerTemplate],
		"secretName: theirs\n") != 2 {
		t.Errorf("a Secret of one's own is not taken:\n%s", texts[gateTemplate])
	}
}

// TestWayIn: the gate lets hubs in, weir-manager says how many replicas there are, and nobody has a right whom the
// values do not name. Values of before know no way in.
func TestWayIn(t *testing.T) {
	const on = "gate: {enabled: true, address: \"gate:1\", "
	const binding = "kind: ClusterRoleBinding"
	before := load(t)
	delete(before.Values["gate"].(map[string]any), "wayIn")
	for name, c := range map[string]struct {
		chart    *chart.Chart
		values   string
		ways     string // --gate-ways; empty: there is no way in
		bindings int
	}{
		"off":                       {load(t), on + "wayIn: {connect: [{kind: User, name: a}]}}", "", 0},
		"values of before":          {before, on + "replicas: 3}", "", 0},
		"no value":                  {load(t), on + "wayIn: null}", "", 0},
		"usual":                     {load(t), on + "wayIn: {enabled: true}}", "2", 0},
		"as many as a pool is told": {load(t), on + "replicas: 9, wayIn: {enabled: true}}", "9", 0},
		"one may":                   {load(t), on + "wayIn: {enabled: true, connect: [{kind: User, name: a}]}}", "2", 1},
		"two may": {
			load(t), on + "wayIn: {enabled: true, connect: [{kind: User, name: a}], connectStraight: [{kind: Group, name: b}]}}",
			"2", 2,
		},
	} {
		texts, err := all(t, c.chart, []byte(c.values))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		gate, manager := texts[gateTemplate], texts[managerTemplate]
		if in := strings.Contains(gate, `"--way-in"`); in != (c.ways != "") ||
			in != strings.Contains(gate, "externalTrafficPolicy: Cluster") || strings.Count(gate, binding) != c.bindings {
			t.Errorf("%s: %s", name, gate)
		}
		if c.ways == "" == strings.Contains(manager, "--gate-ways") ||
			c.ways != "" && !strings.Contains(manager, `"--gate-ways=`+c.ways+`"`) {
			t.Errorf("%s: want --gate-ways=%s: %s", name, c.ways, manager)
		}
	}
	for values, want := range map[string]string{
		"replicas: 10, wayIn: {enabled: true}":                                    "/gate/replicas",
		"wayIn: {enabled: true, connect: [{kind: ServiceAccount, name: a}]}":      "namespace",
		"wayIn: {enabled: true, connect: [{kind: Role, name: a}]}":                "/gate/wayIn/connect/0/kind",
		"wayIn: {enabled: true, connectStraight: [{kind: User}]}":                 "/gate/wayIn/connectStraight/0",
		"wayIn: {enabled: true, connectStraight: [{kind: User, name: a, to: b}]}": "/gate/wayIn/connectStraight/0",
	} {
		if _, err := all(t, load(t), []byte(on+values+"}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", values, err, want)
		}
	}
}

// secretOf is what the Secret of a template has; nil: there is none.
func secretOf(t *testing.T, text string) map[string][]byte {
	t.Helper()
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var o struct {
			Kind string
			Data map[string]string
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind != "Secret" {
			continue
		}
		data := map[string][]byte{}
		for key, value := range o.Data {
			plain, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				t.Fatal(err)
			}
			data[key] = plain
		}
		return data
	}
	return nil
}
