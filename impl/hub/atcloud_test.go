package hub

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/credential"
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
	check(t, os.RemoveAll(b.config.DataDir))
	cloud := b.clouds[0]
	cloud.signer.signs(nil, nil)
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
	b.clouds[0].signer.signs(nil, nil)
	p := b.ca.grant(pki.HubAtCloud, pki.Subject{Pool: "pool-b", Node: "edge-1"}, time.Hour)
	check(t, os.WriteFile(credential.KeptFile(filepath.Join(b.config.DataDir, "pki"), pki.HubAtCloud),
		append(p.KeyPEM, p.CertPEM...), 0o600))
	stop := b.start()
	b.fed()
	if s := b.hub.Status().User; s.Name != nodeUser || !strings.Contains(s.Reason, "not there yet") {
		t.Errorf("with another pool's it says that it is %+v", s)
	}
	stop()
	b.holds(b.ca, pki.HubAtCloud, "edge-1", -time.Minute)
	b.start()
	b.fed()
	if s := b.hub.Status().User; s.Name != nodeUser || !strings.Contains(s.Reason, "ended") {
		t.Errorf("it says that it is %+v", s)
	}
	if by := b.clouds[0].by("/api/v1/endpoints"); !slices.Equal(by, []string{nodeUser}) {
		t.Errorf("it reads as %q", by)
	}
}
