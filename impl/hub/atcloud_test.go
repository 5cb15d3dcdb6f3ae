package hub

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

const (
	ownUser  = "weir:hub:pool-a:edge-1"
	nodeUser = "system:node:edge-1"
)

// by tells who has asked for a path since the cloud was there.
func (c *fakeCloud) by(path string) (users []string) {
	c.set(func() {
		for _, s := range c.seen {
			if s.path == path && !slices.Contains(users, s.user) {
				users = append(users, s.user)
			}
		}
	})
	return users
}

// TestOwnUser: what the hub reads for itself and its pool it reads as a user of its own. What the kubelet asks goes on
// as the node, also if the hub may read it: who holds the node's key gets nothing by the hub that kube-apiserver would
// deny the node.
func TestOwnUser(t *testing.T) {
	b := newBed(t, 1)
	cloud := b.clouds[0]
	cloud.put("default", "web")
	cert := b.ca.tls(nodeUser, "system:nodes")
	b.start()
	b.fed()
	eventually(t, "a probe", func() bool { return len(cloud.by("/readyz")) > 0 })
	for path, want := range map[string]string{
		"/api/v1/endpoints": ownUser, "/apis/discovery.k8s.io/v1/endpointslices": ownUser, "/readyz": ownUser,
	} {
		if got := cloud.by(path); !slices.Equal(got, []string{want}) {
			t.Errorf("%s is asked for by %q, want %s", path, got, want)
		}
	}
	node := b.client(&cert)
	for _, path := range []string{"/echo/x", "/api/v1/nodes/edge-1"} {
		get(t, node, b.url()+path)
		if got := cloud.by(path); !slices.Equal(got, []string{nodeUser}) {
			t.Errorf("%s of the kubelet arrives from %q", path, got)
		}
	}
	get(t, node, b.url()+"/api/v1/namespaces/default/endpoints/web")
	if by := cloud.reviewed(); len(by) == 0 ||
		slices.ContainsFunc(by, func(s string) bool { return !strings.HasPrefix(s, nodeUser+" ") }) {
		t.Errorf("whether the kubelet may read is asked by %q", by)
	}
	if s := b.hub.Status().User; s.Name != ownUser || s.Reason != "" {
		t.Errorf("it says that it is %+v", s)
	}
}

// TestOwnUserComes: a hub that has no certificate of its own yet is its node. Its clients are answered, by the cloud if
// the node may not read. When the certificate is there the hub reads by it, and no client notices.
func TestOwnUserComes(t *testing.T) {
	b := newBed(t, 1)
	c := &b.config
	c.CloudHubCertFile, c.CloudHubKeyFile, c.CoordinatorClientCertFile, c.CoordinatorClientKeyFile = "", "", "", ""
	cloud := b.clouds[0]
	cloud.put("default", "web")
	cloud.denies = func(user, _ string) int {
		if user == nodeUser {
			return http.StatusForbidden
		}
		return 0
	}
	b.start()
	b.fed() // or what the cloud answers in its place
	s := b.hub.Status()
	if s.User.Name != nodeUser || !strings.Contains(s.User.Reason, "not there yet") || s.Resources[0].Denied == "" {
		t.Errorf("without a certificate: %+v, %q", s.User, s.Resources[0].Denied)
	}
	client := b.client(nil)
	read := func() int {
		resp, _ := get(t, client, b.url()+"/api/v1/namespaces/default/endpoints/web", alice...)
		return resp.StatusCode
	}
	if code := read(); code != http.StatusOK {
		t.Errorf("a client is answered %d", code)
	}
	cloud.signer.signs(b.ca, b.local)
	eventually(t, "the relays to be fed as the hub", func() bool {
		s := b.hub.Status()
		return s.User.Name == ownUser && s.Resources[0].Synced && s.Resources[0].Denied == ""
	})
	if code := read(); code != http.StatusOK {
		t.Errorf("then it is answered %d", code)
	}
	if by := cloud.signer.requests(); !slices.Equal(by, []string{nodeUser + " hub-at-cloud edge-1"}) {
		t.Errorf("asked for by %q", by)
	}
	if !strings.Contains(b.log.String(), "a user of its own at the cloud") {
		t.Error("the log does not say who the hub is")
	}
}

// TestOwnUserEnds: a certificate that has ended is not shown any more. One of somebody else is not taken.
func TestOwnUserEnds(t *testing.T) {
	b := newBed(t, 1)
	issue := func(user string, life time.Duration) {
		_, key, cert := b.ca.sign(&x509.Certificate{
			Subject: pkix.Name{CommonName: user}, NotAfter: time.Now().Add(life), KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		text, err := pki.EncodeKey(key)
		check(t, err)
		write(t, b.dir, map[string][]byte{"own.crt": cert, "own.key": text})
	}
	issue("weir:hub:pool-b:edge-1", time.Hour)
	if _, err := New(b.config); !strings.Contains(errorOf(err), "--cloud-hub-cert-file") ||
		!strings.Contains(errorOf(err), ownUser) {
		t.Errorf("another pool's: %v", err)
	}
	b.config.CloudHubKeyFile = ""
	if err := b.config.Validate(); !strings.Contains(errorOf(err), "--cloud-hub-key-file") {
		t.Errorf("without its key: %v", err)
	}
	b.config.CloudHubKeyFile = filepath.Join(b.dir, "own.key")
	issue(ownUser, -time.Minute)
	b.start()
	b.fed()
	if s := b.hub.Status().User; s.Name != nodeUser || !strings.Contains(s.Reason, "ended") {
		t.Errorf("it says that it is %+v", s)
	}
	if by := b.clouds[0].by("/api/v1/endpoints"); !slices.Equal(by, []string{nodeUser}) {
		t.Errorf("it reads as %q", by)
	}
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
