package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source/hop"
)

// judges judges certificates by a clock, while the cloud is there.
func judges(c clock.PassiveClock, refuse func(*x509.Certificate) error) *pki.Allowance {
	return &pki.Allowance{
		Time: pki.OpenProven("", c, slog.New(slog.DiscardHandler)), Cloud: func() bool { return true }, Refuse: refuse,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// harbourDoor is that of the hub of edge-1 in the pool harbour.
func harbourDoor(c pooldoor.Config) *pooldoor.Door {
	c.Server, c.Node, c.Pool, c.Clock = hop.NewServer("edge-1", scope.NewSet().All, clock.RealClock{}), "edge-1",
		"harbour", clock.RealClock{}
	now := clock.RealClock{}
	c.Desk = pooldoor.NewDesk(pooldoor.NewStanding(now), lease.NewNodes(now), now)
	c.Desk.Handle(c.ServeMux)
	return &pooldoor.Door{Config: c}
}

// TestPoolDoorLate: while the cloud is away, a hub of the pool whose certificate has ended reads here, for 90 days;
// what is revoked does not.
func TestPoolDoorLate(t *testing.T) {
	pool := newAuthority(t, "harbour")
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"ca.crt": pool.pem})
	roots, err := new(uplink.Reloader).Bundle("", filepath.Join(dir, "ca.crt"))
	check(t, err)
	cert, _, _ := pool.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: contract.NodeUserPrefix + "edge-2", Organization: []string{
				contract.HubGroup, contract.PoolGroupPrefix + "harbour",
			},
		},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, NotAfter: time.Now().Add(30 * time.Minute),
	})
	refused := errors.New("taken back")
	for _, c := range []struct {
		about string
		by    time.Duration
		cloud bool
		back  error
		in    bool
	}{
		{"in time", 0, true, nil, true},
		{"late", time.Hour, false, nil, true},
		{"late, and the cloud is there", time.Hour, true, nil, false},
		{"late and taken back", time.Hour, false, refused, false},
		{"after 89 days", 89 * 24 * time.Hour, false, nil, true},
		{"after 91 days", 91 * 24 * time.Hour, false, nil, false},
	} {
		late := judges(wrongClock{by: c.by}, func(*x509.Certificate) error { return c.back })
		late.Cloud = func() bool { return c.cloud }
		d := harbourDoor(pooldoor.Config{Coordinators: func() []*url.URL { return nil }, Roots: roots, Late: late})
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, contract.StatusPath, nil)
		req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		w := httptest.NewRecorder()
		if d.ServeHTTP(w, req); (w.Code == http.StatusOK) != c.in {
			t.Errorf("%s: %d, want in: %t", c.about, w.Code, c.in)
		}
		if err := d.TLS().VerifyConnection(*req.TLS); (err == nil) != c.in {
			t.Errorf("%s: the handshake: %v, want in: %t", c.about, err, c.in)
		}
	}
}

// TestPoolDoor: the coordinator and the hubs of the pool come in, and nobody else. Only the coordinator may lean on the
// leader: else any hub of the pool could make one that nobody reads believe that it is read.
func TestPoolDoor(t *testing.T) {
	pool, stranger := newAuthority(t, "harbour"), newAuthority(t, "stranger")
	here := &url.URL{Scheme: "https", Host: "coordinator.example:10270"}
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"ca.crt": pool.pem})
	roots, err := new(uplink.Reloader).Bundle("", filepath.Join(dir, "ca.crt"))
	check(t, err)
	d := harbourDoor(pooldoor.Config{
		Coordinators: func() []*url.URL { return []*url.URL{here} }, Roots: roots, Late: judges(clock.RealClock{}, nil),
	})
	hub := func() *x509.Certificate {
		return &x509.Certificate{
			Subject: pkix.Name{
				CommonName:   contract.NodeUserPrefix + "edge-2",
				Organization: []string{contract.HubGroup, contract.PoolGroupPrefix + "harbour"},
			},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
	}
	coordinator := func() *x509.Certificate {
		return &x509.Certificate{
			Subject: pkix.Name{CommonName: "any"}, DNSNames: []string{"coordinator.example"},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
	}
	with := func(c *x509.Certificate, change func(*x509.Certificate)) *x509.Certificate {
		change(c)
		return c
	}
	gone, leave := context.WithCancel(t.Context()) // a pulse lasts as long as the one that asks for it is there
	leave()
	const in, status, out = http.StatusServiceUnavailable, http.StatusOK, http.StatusForbidden
	for name, c := range map[string]struct {
		by                   *authority
		cert                 *x509.Certificate
		status, pulse, relay int
	}{
		"coordinator":                {pool, coordinator(), status, http.StatusOK, in},
		"hub of the pool":            {pool, hub(), status, out, in},
		"coordinator's name, stolen": {stranger, coordinator(), out, out, out},
		"coordinator's name, as a client only": {pool, with(coordinator(), func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), out, out, out},
		"another host": {
			pool, with(coordinator(), func(c *x509.Certificate) { c.DNSNames = []string{"example"} }), out, out, out,
		},
		"hub by another's hand": {stranger, hub(), out, out, out},
		"hub of another pool": {pool, with(hub(), func(c *x509.Certificate) {
			c.Subject.Organization[1] = contract.PoolGroupPrefix + "quay"
		}), out, out, out},
		"hub of no pool": {
			pool, with(hub(), func(c *x509.Certificate) { c.Subject.Organization = c.Subject.Organization[:1] }), out, out, out,
		},
		"no hub": {
			pool, with(hub(), func(c *x509.Certificate) { c.Subject.Organization = c.Subject.Organization[1:] }), out, out, out,
		},
		"no node": {pool, with(hub(), func(c *x509.Certificate) { c.Subject.CommonName = "edge-2" }), out, out, out},
		"hub's certificate of a server": {pool, with(hub(), func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), out, out, out},
		"expired": {
			pool, with(hub(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), out, out, out,
		},
		"nobody": {nil, nil, out, out, out},
	} {
		t.Run(name, func(t *testing.T) {
			var chain []*x509.Certificate
			if c.by != nil {
				cert, _, _ := c.by.sign(c.cert)
				chain = append(chain, cert)
			}
			err := d.TLS().VerifyConnection(tls.ConnectionState{PeerCertificates: chain})
			if (err != nil) != (c.status == out) {
				t.Errorf("the handshake: %v", err)
			}
			for path, want := range map[string]int{
				contract.StatusPath: c.status, contract.PulsePath: c.pulse, "/api/v1/secrets": c.relay,
				contract.ImagesBlobsPath + "sha256:": c.relay,
			} {
				req := httptest.NewRequestWithContext(gone, http.MethodGet, path, nil)
				req.TLS = &tls.ConnectionState{PeerCertificates: chain}
				w := httptest.NewRecorder()
				d.ServeHTTP(w, req)
				if w.Code != want {
					t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
				}
			}
		})
	}
}

// TestPoolDoorByTheCloudsClock: certificates are judged by the time that the cloud told, whatever this machine
// believes; one that an authority has signed proves that it is as late as its beginning.
func TestPoolDoorByTheCloudsClock(t *testing.T) {
	pool := newAuthority(t, "harbour")
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"ca.crt": pool.pem})
	roots, err := new(uplink.Reloader).Bundle("", filepath.Join(dir, "ca.crt"))
	check(t, err)
	cert, _, _ := pool.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: contract.NodeUserPrefix + "edge-2", Organization: []string{
			contract.HubGroup, contract.PoolGroupPrefix + "harbour",
		}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, NotAfter: time.Now().Add(30 * time.Minute),
	})
	for _, c := range []struct {
		by time.Duration
		in bool
	}{
		{0, true}, {29 * time.Minute, true}, {31 * time.Minute, false}, {-50 * time.Minute, true}, {-70 * time.Minute, true},
	} {
		d := harbourDoor(pooldoor.Config{Coordinators: func() []*url.URL { return nil }, Roots: roots,
			Late: judges(wrongClock{by: c.by}, nil)})
		chain := []*x509.Certificate{cert}
		if err := d.TLS().VerifyConnection(tls.ConnectionState{PeerCertificates: chain}); (err == nil) != c.in {
			t.Errorf("%v from now: %v, want in: %t", c.by, err, c.in)
		}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, contract.StatusPath, nil)
		req.TLS = &tls.ConnectionState{PeerCertificates: chain}
		w := httptest.NewRecorder()
		if d.ServeHTTP(w, req); (w.Code == http.StatusOK) != c.in {
			t.Errorf("%v from now: %d, want in: %t", c.by, w.Code, c.in)
		}
	}
}
