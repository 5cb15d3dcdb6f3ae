package directory

import (
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// gated is the object with a gate.
func gated(server, authorities, ways string) *corev1.Endpoints {
	return object(func(o *corev1.Endpoints) {
		for name, value := range map[string]string{
			contract.LeaderHubGate: server, contract.LeaderHubGateCA: authorities, contract.LeaderHubGateWays: ways,
		} {
			if value != "" {
				o.Annotations[name] = value
			}
		}
	})
}

// authority is the PEM of one, and its key's.
func authority(t *testing.T) (cert, key string) {
	t.Helper()
	a := must(pki.NewPoolAuthority("gate", time.Now()))
	return string(a.CertPEM()), string(must(a.KeyPEM()))
}

// TestGate: what the object tells of a gate comes to hubs as it was told, signed.
func TestGate(t *testing.T) {
	first, _ := authority(t)
	second, _ := authority(t)
	p := newPool()
	for about, g := range map[string]Gate{
		"a name": {"https://gate.example:10273", first, 0}, "IPv6": {"https://[fd00::1]:10273", first, 0},
		"443": {"https://gate.example", first, 0}, "two authorities": {"https://10.0.0.1:10273", first + second, 0},
		"as long as may be": {"https://" + strings.Repeat("a", maxURL-len("https://")), first, 0},
		"ways":              {"https://gate.example", first, 2},
	} {
		ways := ""
		if g.Ways > 0 {
			ways = strconv.Itoa(g.Ways)
		}
		e, err := Parse("harbour", gated(g.Server, g.Authorities, ways), 42)
		if err != nil || e.Gate != g {
			t.Errorf("%s: %+v, %v", about, e.Gate, err)
			continue
		}
		line := must(e.Sign(p.authorities[0]))
		if again, by, err := Open(line, "harbour", p.trusted()); err != nil || by == nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%s: opened as %+v, %v", about, again, err)
		}
		stranger := newPool()
		if _, _, err := Open(line, "harbour", stranger.trusted()); err == nil {
			t.Errorf("%s: believed though nobody who is trusted has signed it", about)
		}
	}
}

// TestGateRefused: a gate that hubs could not use, or that nobody proves to be one, is refused, and names the field.
func TestGateRefused(t *testing.T) {
	cert, key := authority(t)
	const server = "https://gate.example:10273"
	bundle := strings.Repeat(cert, MaxAuthorities/len(cert)+1)
	for about, test := range map[string]struct{ server, authorities, field, want string }{
		"no authority": {
			server, "", contract.LeaderHubGateCA, "has 0 bytes, want certificates as PEM and nothing else, 8192 bytes at most",
		},
		"no server": {"", cert, contract.LeaderHubGate, `is "", want a URL of the form https://host:port`},
		"plain HTTP": {
			"http://gate.example:10273", cert, contract.LeaderHubGate, `is "http://gate.example:10273", want a URL`,
		},
		"another":       {"ftp://gate.example", cert, contract.LeaderHubGate, "want a URL"},
		"no scheme":     {"gate.example:10273", cert, contract.LeaderHubGate, "want a URL"},
		"no host":       {"https://:10273", cert, contract.LeaderHubGate, "want a URL"},
		"a path":        {server + "/api", cert, contract.LeaderHubGate, "want a URL"},
		"a root":        {server + "/", cert, contract.LeaderHubGate, "want a URL"},
		"a query":       {server + "?a=b", cert, contract.LeaderHubGate, "want a URL"},
		"an empty one":  {server + "?", cert, contract.LeaderHubGate, "want a URL"},
		"a fragment":    {server + "#a", cert, contract.LeaderHubGate, "want a URL"},
		"a password":    {"https://a:b@gate.example", cert, contract.LeaderHubGate, "want a URL"},
		"a line":        {server + "\n", cert, contract.LeaderHubGate, "want a URL"},
		"no port":       {"https://gate.example:port", cert, contract.LeaderHubGate, "want a URL"},
		"two of them":   {server + "," + server, cert, contract.LeaderHubGate, "want a URL"},
		"long URL":      {"https://" + strings.Repeat("a", maxURL), cert, contract.LeaderHubGate, "want a URL"},
		"no PEM":        {server, "the one of the cluster", contract.LeaderHubGateCA, "want certificates as PEM"},
		"another block": {server, key, contract.LeaderHubGateCA, "want certificates as PEM"},
		"half of it":    {server, cert[:len(cert)/2], contract.LeaderHubGateCA, "want certificates as PEM"},
		"no X.509": {
			server, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", contract.LeaderHubGateCA,
			"want certificates as PEM",
		},
		"too long": {
			server, bundle, contract.LeaderHubGateCA, "bytes, want certificates as PEM and nothing else, 8192 bytes at most",
		},
		"all too long": {server, strings.Repeat(cert, 40), contract.LeaderHubGateCA, "bytes, want 16384 at most"},
	} {
		_, err := Parse("harbour", gated(test.server, test.authorities, ""), 42)
		if err == nil || !strings.Contains(err.Error(), test.field+" ") || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
			t.Errorf("%s: %v, want %s: %s", about, err, test.field, test.want)
		}
		e := entry(42, "a:1")
		e.Gate = Gate{Server: test.server, Authorities: test.authorities}
		if _, err := e.Sign(newPool().authorities[0]); err == nil {
			t.Errorf("%s: it is signed", about)
		}
		if text, _ := json.Marshal(e); test.field != "" {
			if _, err := decode("harbour", text); err == nil {
				t.Errorf("%s: a hub takes it", about)
			}
		}
	}
}

// TestWaysRefused: how many connections a leader keeps is bounded, and means nothing without a gate.
func TestWaysRefused(t *testing.T) {
	cert, _ := authority(t)
	for _, ways := range []string{"-1", "10", "two", "1.5", "9999999999999999999"} {
		_, err := Parse("harbour", gated("https://gate.example", cert, ways), 42)
		if err == nil || !strings.Contains(err.Error(), contract.LeaderHubGateWays+" is ") ||
			!strings.Contains(err.Error(), "want 0 to 9") {
			t.Errorf("%s: %v", ways, err)
		}
	}
	if _, err := Parse("harbour", gated("", "", "2"), 42); err == nil {
		t.Error("ways without a gate")
	}
	e := entry(42, "a:1")
	e.Gate = Gate{"https://gate.example", cert, 10}
	if _, err := e.Sign(newPool().authorities[0]); err == nil {
		t.Error("it is signed")
	}
}

// TestNoGate: what is told of a pool without a gate has the bytes that it has always had: what was signed before gates
// is what is signed now.
func TestNoGate(t *testing.T) {
	const before = `{"pool":"harbour","version":42,"mode":"coordinator","connected":true,` +
		`"leaders":[{"node":"edge-1","addresses":["10.0.0.7:10269","[fd00::7]:10269"]},` +
		`{"node":"edge-2","addresses":["10.0.0.8:10269"]}],` +
		`"coordinators":["https://10.0.0.7:10270","https://[fd00::7]:10270"],` +
		`"replicas":[{"placement":"1-ab","node":"edge-1","address":"10.0.0.7"},` +
		`{"placement":"2-ab","node":"edge-2","address":"fd00::7"}],` +
		`"scope":[{"version":"v1","resource":"endpoints"},` +
		`{"group":"discovery.k8s.io","version":"v1","resource":"endpointslices"},` +
		`{"group":"example.com","version":"v1","resource":"widgets","kind":"Widget"}],"offlineAllowance":"720h",` +
		`"images":[{"registry":"*","sharing":"enabled"},{"registry":"[fd00::7]:5000","sharing":"disabled"},` +
		`{"registry":"secret.example","sharing":"judged"}]}`
	for about, o := range map[string]*corev1.Endpoints{"no annotation": object(nil), "empty ones": object(
		func(o *corev1.Endpoints) {
			o.Annotations[contract.LeaderHubGate], o.Annotations[contract.LeaderHubGateCA] = "", ""
		})} {
		e := must(Parse("harbour", o, 42))
		if text := must(json.Marshal(e)); string(text) != before {
			t.Errorf("%s: %s\nwant %s", about, text, before)
		}
	}
	if text := must(json.Marshal(Entry{Pool: "harbour", Version: 1})); string(text) != `{"pool":"harbour","version":1}` {
		t.Errorf("%s", text)
	}
}

// TestGateComesAndGoes: a hub follows what is told, and does not keep a gate that is told no more. Flags name none.
func TestGateComesAndGoes(t *testing.T) {
	p := newPool()
	d := p.holder("", io.Discard)
	cert, _ := authority(t)
	const server = "https://gate.example:10273"
	for i, g := range []Gate{{}, {Server: server, Authorities: cert}, {Server: server + "1", Authorities: cert}, {}} {
		e := must(Parse("harbour", gated(g.Server, g.Authorities, ""), uint64(5+i)))
		if _, err := d.TakeOfCloud(must(e.Sign(p.authorities[0]))); err != nil {
			t.Fatal(err)
		}
		if d.Now().Gate != g || d.Status().Gate != g.Server {
			t.Errorf("%d: %+v, status %q, want %+v", i, d.Now().Gate, d.Status().Gate, g)
		}
	}
}

// TestGateCAIsCertificatesAlone: what stands beside certificates is not told to a pool, and least of all a key.
func TestGateCAIsCertificatesAlone(t *testing.T) {
	cert, key := authority(t)
	const server = "https://gate.example:10273"
	for about, text := range map[string]string{
		"a key behind it": cert + key, "a key before it": key + cert, "no certificate behind it": cert +
			"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if e, err := Parse("harbour", gated(server, text, ""), 42); err == nil {
			t.Errorf("%s: told in %d bytes", about, len(e.Gate.Authorities))
		}
	}
	e, err := Parse("harbour", gated(server, strings.Repeat("# \x01<>\n", 1000)+cert, ""), 42)
	if err != nil || e.Gate.Authorities != cert {
		t.Errorf("remarks: told in %d bytes, %v", len(e.Gate.Authorities), err)
	}
}
