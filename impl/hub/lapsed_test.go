package hub

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/lease"
)

// expired makes a client certificate that ended a while ago.
func (a *authority) expired(ago time.Duration, usage x509.ExtKeyUsage, user string, groups ...string) *tls.Certificate {
	a.t.Helper()
	cert, key, _ := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, NotAfter: time.Now().Add(-ago),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	})
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

const slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"

// TestLapsedCertificate is the table of certificates that have expired: one of this node counts while the cloud is
// away, for as long as is allowed.
func TestLapsedCertificate(t *testing.T) {
	b, link := offlineBed(t)
	b.config.OfflineTokenAllowance = 40 * time.Minute
	cloud := b.clouds[0]
	cloud.put("default", "web")
	cloud.node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "uid", ResourceVersion: "100"}}
	good := b.ca.tls("system:node:edge-1", "system:nodes")
	node := b.client(&good)
	stop := b.start()
	b.here()
	b.fed()
	const list, own = "/api/v1/endpoints", "/api/v1/nodes/edge-1"
	for _, path := range []string{list, own, slicesPath} {
		if resp, body := get(t, node, b.url()+path); resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s %s", path, resp.Status, body)
		}
	}
	b.kept(2)

	const user, group = "system:node:edge-1", "system:nodes"
	client, server := x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	within, beyond := 30*time.Minute, 50*time.Minute
	tests := []struct {
		name   string
		cert   *tls.Certificate
		header []string
		away   int // what is answered while the cloud is away; else it is 401
	}{
		{"of this node", b.ca.expired(within, client, user, group), nil, http.StatusOK},
		{"of this node, too long ago", b.ca.expired(beyond, client, user, group), nil, http.StatusUnauthorized},
		{"of another node", b.ca.expired(within, client, "system:node:edge-2", group), nil, http.StatusUnauthorized},
		{"without the group of nodes", b.ca.expired(within, client, user), nil, http.StatusUnauthorized},
		{"by somebody else", newAuthority(t, "unknown").expired(within, client, user, group), nil, http.StatusUnauthorized},
		{"of a server", b.ca.expired(within, server, user, group), nil, http.StatusUnauthorized},
		{
			"of this node, in another's name", b.ca.expired(within, client, user, group), []string{"Impersonate-User", "admin"},
			http.StatusServiceUnavailable,
		},
	}
	clients := make([]*http.Client, len(tests)) // connections live on, as a kubelet's do
	for i, test := range tests {
		clients[i] = b.client(test.cert)
	}
	all := func(t *testing.T, away bool) {
		t.Helper()
		for i, test := range tests {
			want := http.StatusUnauthorized
			if away {
				want = test.away
			}
			for _, path := range []string{list, own, slicesPath} {
				if resp, body := get(t, clients[i], b.url()+path, test.header...); resp.StatusCode != want {
					t.Errorf("a certificate %s: GET %s: %s, want %d: %s", test.name, path, resp.Status, want, body)
				}
			}
		}
	}
	for range 2 {
		t.Run("the cloud is there", func(t *testing.T) { all(t, false) })
		link.set(true)
		b.away()
		t.Run("the cloud is away", func(t *testing.T) { all(t, true) })
		link.set(false)
		b.here()
		t.Run("the cloud is back", func(t *testing.T) { all(t, false) })
	}
	link.set(true)
	b.away()
	stop()
	b.start()
	b.away()
	t.Run("after a restart", func(t *testing.T) { all(t, true) })
}

// TestLapsedNodeLives: with a certificate that has expired a node reads and sends heartbeats while the cloud is away.
// When it is back, streams end, and neither then nor before anything of it was sent there in the name of the node.
func TestLapsedNodeLives(t *testing.T) {
	b, link := offlineBed(t)
	b.config.OfflineTokenAllowance = time.Hour
	cloud := b.clouds[0]
	cloud.put("default", "web")
	cloud.node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "uid", ResourceVersion: "100"}}
	k := b.kubelet()
	b.start()
	b.here()
	b.fed()
	k.beat()
	for _, path := range []string{"/api/v1/endpoints", "/api/v1/nodes/edge-1", slicesPath} {
		get(t, k.client, b.url()+path)
	}
	b.kept(2)
	link.set(true)
	b.away()

	k.client = b.client(b.ca.expired(time.Minute, x509.ExtKeyUsageClientAuth, "system:node:edge-1", "system:nodes"))
	k.beats(http.StatusOK)
	k.lease = nil // it has restarted
	k.beats(http.StatusOK, http.StatusOK)
	patch := func() int {
		return first(do(t, k.client, http.MethodPatch, b.url()+"/api/v1/nodes/edge-1/status",
			[]byte(`{"status":{"nodeInfo":{"kernelVersion":"6.1"}}}`),
			"Content-Type", "application/strategic-merge-patch+json")).StatusCode
	}
	if code := patch(); code != http.StatusServiceUnavailable {
		t.Errorf("the node's status, which would be pushed with a certificate that is good: %d", code)
	}
	event := `{"metadata":{"name":"e","namespace":"default"},"involvedObject":{"namespace":"default"}}`
	for path, want := range map[string]int{
		"/api/v1/namespaces/default/events": http.StatusServiceUnavailable, "/api/v1/nodes": http.StatusConflict,
	} {
		body := event
		if want == http.StatusConflict { // a kubelet that starts has to find its Node
			body = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"edge-1"}}`
		}
		if resp, answer := do(t, k.client, http.MethodPost, b.url()+path, []byte(body), "Content-Type",
			"application/json"); resp.StatusCode != want {
			t.Errorf("POST %s: %s, want %d: %s", path, resp.Status, want, answer)
		}
	}
	if n := b.hub.store.Queue().Len(); n != 0 {
		t.Errorf("%d writes wait for the cloud", n)
	}
	var watches sync.WaitGroup
	for _, path := range []string{
		"/api/v1/endpoints?watch=1&resourceVersion=101", slicesPath + "?watch=1&resourceVersion=100",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url()+path, nil)
		check(t, err)
		resp, err := k.client.Do(req)
		check(t, err)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s", path, resp.Status)
		}
		watches.Go(func() {
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Errorf("the watch of %s does not end with the cloud's return: %v", path, err)
			}
		})
	}
	cloud.set(func() { cloud.seen = nil })
	link.set(false)
	codes := map[int]int{}
	eventually(t, "the node to be refused", func() bool { // asks all the while the cloud comes back
		resp, _ := get(t, k.client, b.url()+"/echo/lapsed")
		codes[resp.StatusCode]++
		codes[patch()]++
		_, _ = k.send(http.MethodGet, nil)
		return resp.StatusCode == http.StatusUnauthorized && !b.hub.shelter.Writes.Holding()
	})
	watches.Wait()
	if code, _ := k.send(http.MethodGet, nil); code != http.StatusUnauthorized {
		t.Errorf("the node reads its Lease: %d", code)
	}
	cloud.set(func() {
		if v := cloud.node.Status.NodeInfo.KernelVersion; v != "" {
			t.Errorf("what the node wrote is in the cloud: %s", v)
		}
	})
	cloud.set(func() {
		for _, s := range cloud.seen {
			if strings.HasPrefix(s.path, "/echo/") || strings.HasPrefix(s.path, lease.Path) {
				t.Errorf("%s arrived at the cloud, by %s", s.path, s.user)
			}
		}
	})
	t.Logf("answers until the node was refused: %v", codes)
}

// TestLapsedGoesNowhere: what came with an expired certificate finds no way to the cloud, also if that is there.
func TestLapsedGoesNowhere(t *testing.T) {
	b := newBed(t, 1)
	b.start()
	b.fed()
	late, isLate := uplink.Lapse(t.Context()), true
	for range 2 {
		k := b.hub.cloud
		up := k.Upstream(func(int) {})
		ways := []http.RoundTripper{k.Prove(), up.Client.Transport, up.Aside.Transport, up.Ask.Transport}
		for _, c := range uplink.Classes {
			ways = append(ways, k.Way(c, uplink.AsCaller), k.Way(c, uplink.AsNode), k.Way(c, uplink.AsHub))
		}
		for key, d := range ways {
			req, err := http.NewRequestWithContext(late, http.MethodGet, "https://cloud/echo/x", http.NoBody)
			check(t, err)
			resp, err := d.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if errors.Is(err, uplink.ErrLapsed) != isLate {
				t.Errorf("way %v, expired %v: %v", key, isLate, err)
			}
		}
		a := identity.Attributes{Verb: "list", Version: "v1", Resource: "endpoints"}
		if err := b.hub.door.Authorizer.Authorize(late, access.Caller{Kind: access.ThisNode}, nil, a); (err != nil) !=
			isLate {
			t.Errorf("a review, expired %v: %v", isLate, err)
		}
		late, isLate = t.Context(), false
	}
	b.clouds[0].set(func() {
		if n := len(b.clouds[0].reviews); n != 1 {
			t.Errorf("%d reviews", n)
		}
	})
}

// TestLapsedUnknown: before anybody has judged the cloud, an expired certificate is no reason to wait, but one to find
// out.
func TestLapsedUnknown(t *testing.T) {
	b, link := offlineBed(t)
	b.config.OfflineTokenAllowance = time.Hour
	b.clouds[0].put("default", "web")
	good := b.ca.tls("system:node:edge-1", "system:nodes")
	b.visited(&good)
	link.set(true)
	late := b.client(b.ca.expired(time.Minute, x509.ExtKeyUsageClientAuth, "system:node:edge-1", "system:nodes"))
	b.config.HeartbeatInterval = time.Hour
	b.start()
	eventually(t, "the hub to find out that the cloud is away", func() bool {
		names, _, resp := b.list(late, "")
		if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
			t.Error("the hub does not say that it will know soon")
		}
		return names == "web"
	})
}
