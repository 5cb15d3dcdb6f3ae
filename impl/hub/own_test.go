package hub

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
)

// ownBed is offlineBed with a hub whose certificate nobody made.
func ownBed(t *testing.T) (*bed, *cut) {
	t.Helper()
	b, link := offlineBed(t)
	check(t, os.Remove(b.config.etc(servingPair)))
	return b, link
}

// ownClient trusts what the hub shows, and has a certificate; nil: none.
func (b *bed) ownClient(cert *tls.Certificate) *http.Client {
	b.t.Helper()
	text, err := os.ReadFile(b.config.etc(nodeAuthority))
	check(b.t, err)
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(text)
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return testClient(b.t, config, true)
}

// credential is what the hub keeps for its kubelet.
func (b *bed) credential() *tls.Certificate {
	b.t.Helper()
	path := filepath.Join(b.config.DataDir, "pki", "kubelet.pem")
	c, err := tls.LoadX509KeyPair(path, path)
	check(b.t, err)
	return &c
}

// ownAuthority is the key of the hub's node, as somebody has it who is root there.
func (b *bed) ownAuthority() *pki.Authority {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.config.DataDir, "pki", "node-authority.pem"))
	check(b.t, err)
	at := strings.Index(string(text), "-----BEGIN CERTIFICATE")
	a, err := pki.LoadAuthority(text[at:], text[:at])
	check(b.t, err)
	return a
}

// TestOwnCredential: with the credential of the node's own authority the kubelet goes on. While the cloud is there its
// requests are the node's, as long as the certificate counts that the hub has; else they are refused with the reason.
// While it is away it reads, and its heartbeats are taken, and nothing else that it writes.
func TestOwnCredential(t *testing.T) {
	b, link := ownBed(t)
	cloud := b.clouds[0]
	cloud.put("default", "web")
	cloud.node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "uid", ResourceVersion: "100"}}
	h, err := New(b.config)
	check(t, err)
	counts := make(chan bool, 1)
	counts <- true
	h.shelter.NodeCounts = func() bool {
		now := <-counts
		counts <- now
		return now && h.nodeCounts(h.time.Now)
	}
	b.run(h)
	b.here()
	b.fed()
	node := b.ownClient(b.credential())
	const list, own = "/api/v1/endpoints", "/api/v1/nodes/edge-1"
	for _, path := range []string{list, own, slicesPath} {
		if resp, body := get(t, node, b.url()+path); resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s %s", path, resp.Status, body)
		}
	}
	resp, body := get(t, node, b.url()+"/echo/x")
	var e echo
	check(t, json.Unmarshal([]byte(body), &e))
	if resp.StatusCode != http.StatusOK || e.User != "system:node:edge-1" || !e.Cert {
		t.Errorf("the cloud saw %+v", e)
	}
	k := b.kubelet()
	k.client = node
	k.beats(http.StatusNotFound, http.StatusCreated)
	b.kept(2)

	<-counts
	counts <- false
	cloud.set(func() { cloud.seen = nil })
	for _, path := range []string{list, own, "/echo/x"} {
		if resp, body := get(t, node, b.url()+path); resp.StatusCode != http.StatusUnauthorized ||
			!strings.Contains(body, "node's own authority") {
			t.Errorf("the node's certificate counts no more: GET %s: %s %s", path, resp.Status, body)
		}
	}
	link.set(true)
	b.away()
	for _, path := range []string{list, own, slicesPath} {
		if resp, body := get(t, node, b.url()+path); resp.StatusCode != http.StatusOK {
			t.Errorf("without the cloud: GET %s: %s %s", path, resp.Status, body)
		}
	}
	<-counts
	counts <- true // it makes no difference while the cloud is away
	k.beats(http.StatusOK)
	patch, answer := do(t, node, http.MethodPatch, b.url()+own+"/status",
		[]byte(`{"status":{"nodeInfo":{"kernelVersion":"6.1"}}}`), "Content-Type", "application/strategic-merge-patch+json")
	if patch.StatusCode != http.StatusServiceUnavailable || b.hub.store.Queue().Len() != 0 {
		t.Errorf("the node's status: %s %s; %d writes wait for the cloud", patch.Status, answer, b.hub.store.Queue().Len())
	}
	<-counts
	counts <- false
	link.set(false)
	b.here()
	eventually(t, "the node to be refused", func() bool {
		resp, _ := get(t, node, b.url()+"/echo/x")
		return resp.StatusCode == http.StatusUnauthorized
	})
	cloud.set(func() {
		for _, s := range cloud.seen {
			if strings.HasPrefix(s.path, "/echo/") || strings.HasPrefix(s.path, own) ||
				strings.HasPrefix(s.path, lease.Path) {
				t.Errorf("%s arrived at the cloud, by %s", s.path, s.user)
			}
		}
	})
}

// TestOwnCredentialIsLocal: nothing but the kubelet's own certificate by this node's own authority counts, at no other
// door.
func TestOwnCredentialIsLocal(t *testing.T) {
	b, link := ownBed(t)
	b.clouds[0].put("default", "web")
	b.start()
	b.here()
	b.fed()
	good := b.credential()
	get(t, b.ownClient(good), b.url()+"/api/v1/endpoints")
	b.kept(1)
	a := b.ownAuthority()
	other, err := pki.NewNodeAuthority("edge-1", time.Now()) // of the same name
	check(t, err)
	now, kubelet := time.Now(), pki.Must(pki.Kubelet)
	issue := func(a *pki.Authority, change func(*pki.Template)) *tls.Certificate {
		t.Helper()
		tmpl, err := kubelet.Template(pki.Subject{Node: "edge-1"}, now, time.Hour)
		check(t, err)
		change(&tmpl)
		pair, err := a.Issue(tmpl)
		check(t, err)
		c, err := pair.TLS()
		check(t, err)
		return &c
	}
	all := map[string]struct {
		cert *tls.Certificate
		want int
	}{
		"the kubelet's":       {good, http.StatusOK},
		"another of the same": {issue(a, func(*pki.Template) {}), http.StatusOK},
		"of another node": {
			issue(a, func(t *pki.Template) { t.CommonName = "system:node:edge-2" }), http.StatusUnauthorized,
		},
		"without the group": {issue(a, func(t *pki.Template) { t.Organizations = nil }), http.StatusUnauthorized},
		"of a server": {
			issue(a, func(t *pki.Template) { t.Client, t.Server = false, true }), http.StatusUnauthorized,
		},
		"expired": {
			issue(a, func(t *pki.Template) { t.NotAfter = now.Add(-time.Second) }), http.StatusUnauthorized,
		},
		"of an authority like ours": {issue(other, func(*pki.Template) {}), http.StatusUnauthorized},
	}
	for _, away := range []bool{false, true} {
		if away {
			link.set(true)
			b.away()
		}
		for name, c := range all {
			if resp, body := get(t, b.ownClient(c.cert), b.url()+"/api/v1/endpoints"); resp.StatusCode != c.want {
				t.Errorf("away %v: %s: %s %s", away, name, resp.Status, body)
			}
		}
	}
	cloud, err := url.Parse(b.clouds[0].url())
	check(t, err)
	conn, err := tls.Dial("tcp", cloud.Host, &tls.Config{
		RootCAs: b.ca.pool(), ServerName: "127.0.0.1",
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return good, nil // whomever the server trusts
		},
	})
	if err == nil { // the refusal comes behind the handshake
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "remote error: tls") {
		t.Errorf("the cloud takes it: %v", err)
	}
}

// TestOwnOrFiles: a hub with files shows them, and makes no authority; one without is the same again after a restart.
func TestOwnOrFiles(t *testing.T) {
	b := newBed(t, 1)
	stop := b.start()
	if resp, _ := get(t, b.client(nil), b.url()+"/healthz"); resp.StatusCode == 0 {
		t.Error("no answer")
	}
	if _, err := os.Stat(filepath.Join(b.config.DataDir, "pki", "node-authority.pem")); err == nil {
		t.Error("a hub with files makes an authority")
	}
	stop()
	b, _ = ownBed(t)
	stop = b.start()
	client := b.ownClient(nil)
	get(t, client, b.url()+"/healthz")
	stop()
	client.CloseIdleConnections()
	b.start()
	get(t, client, b.url()+"/healthz")
}

// TestOwnReads: the node itself is shown its authority in kube-root-ca.crt, whatever it calls itself and by whichever
// certificate. Everybody else is shown what the cloud has, also the node when it takes another's name. Each read is one
// at the cloud, as without that. Nor is a cloud that is away asked, or the store's copy another one.
func TestOwnReads(t *testing.T) {
	b, link := ownBed(t)
	b.start()
	b.here()
	b.fed()
	shown, err := os.ReadFile(b.config.etc(nodeAuthority))
	check(t, err)
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node, local, pod := b.ownClient(&cert), b.ownClient(b.credential()), b.ownClient(nil)
	both := rootsOfCloud + string(shown)
	const roots, other = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
		"/api/v1/namespaces/default/configmaps/settings"
	tests := []struct {
		name   string
		client *http.Client
		path   string
		header []string
		want   string
	}{
		{"the node", node, roots, []string{"User-Agent", "kubelet/v1"}, both},
		{"the node, by any program", node, roots, []string{"User-Agent", "curl"}, both},
		{"the node, by its own authority", local, roots, nil, both},
		{"the node, another ConfigMap", node, other, nil, rootsOfCloud},
		{"the node as somebody else", node, roots, []string{"Impersonate-User", "admin"}, rootsOfCloud},
		{"a pod", pod, roots, []string{"Authorization", "Bearer pod", "User-Agent", "kubelet/v1"}, rootsOfCloud},
		{"a pod over a connection of the node", node, roots, []string{"Authorization", "Bearer pod"}, rootsOfCloud},
	}
	read := func(i int) (int, string) {
		t.Helper()
		resp, body := get(t, tests[i].client, b.url()+tests[i].path, tests[i].header...)
		var c corev1.ConfigMap
		check(t, json.Unmarshal([]byte(body), &c))
		if resp.StatusCode == http.StatusOK && c.ResourceVersion != "7" {
			t.Errorf("%s: version %s", tests[i].name, c.ResourceVersion)
		}
		return resp.StatusCode, c.Data["ca.crt"]
	}
	asked := func() (n int) {
		b.clouds[0].set(func() {
			for _, s := range b.clouds[0].seen {
				if strings.Contains(s.path, "configmaps") {
					n++
				}
			}
		})
		return n
	}
	for i, test := range tests {
		before := asked()
		if code, got := read(i); code != http.StatusOK || got != test.want {
			t.Errorf("%s: %d %q", test.name, code, got)
		}
		if n := asked() - before; n != 1 {
			t.Errorf("%s: %d requests at the cloud", test.name, n)
		}
	}
	eventually(t, "what was read to be kept", func() bool { return b.hub.store.Stats().FileBytes > 0 })
	link.set(true)
	b.away()
	for i, test := range tests {
		if code, got := read(i); code == http.StatusOK && got != test.want {
			t.Errorf("%s, without the cloud: %q", test.name, got)
		} else if code != http.StatusOK && i == 0 {
			t.Errorf("%s, without the cloud: %d", test.name, code)
		}
	}
}
