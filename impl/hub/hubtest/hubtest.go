package hubtest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/pki"
)

// PoolName is the name of each Pool.
const PoolName = "harbour"

// Serve is a TLS server on loopback that asks for certificates. Requests that wait end with it.
func Serve(t testing.TB, handler http.Handler, http2 bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = http2
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Authorities is the PEM by which the certificate of a server is judged.
func Authorities(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// Holder is a certificate that can be replaced.
type Holder struct {
	atomic.Pointer[tls.Certificate]
}

// Get implements uplink.Certificate.
func (h *Holder) Get() *tls.Certificate { return h.Load() }

// Show replaces the certificate by one of a common name.
func (h *Holder) Show(t testing.TB, name string) {
	t.Helper()
	a, err := pki.NewPoolAuthority(name, time.Now())
	check(t, err)
	pair, err := a.Issue(pki.Template{
		CommonName: name, Client: true, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
	})
	check(t, err)
	own, err := pair.TLS()
	check(t, err)
	h.Store(&own)
}

// Cloud is one whose only server is kube, called with the certificate of cert.
func Cloud(t testing.TB, kube *httptest.Server, cert uplink.Certificate) *uplink.Cloud {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	roots := filepath.Join(t.TempDir(), "ca")
	check(t, os.WriteFile(roots, []byte(Authorities(kube)), 0o600))
	bundle, err := (&uplink.Reloader{Clock: clock.RealClock{}, Logger: logger}).Bundle("--ca", roots)
	check(t, err)
	server, err := url.Parse(kube.URL)
	check(t, err)
	at := map[uplink.Class][]*url.URL{}
	for _, class := range uplink.Classes {
		at[class] = []*url.URL{server}
	}
	return uplink.NewCloud(uplink.CloudConfig{
		Net: &net.Dialer{}, Servers: at, Roots: bundle, Node: cert, Hub: cert, NodeName: "edge-1",
		Policy: member.Probing{
			Interval: 50 * time.Millisecond, Timeout: 10 * time.Second, Failures: 2, Healthy: 1, Away: 50 * time.Millisecond,
			Confirm: 50 * time.Millisecond, Limit: 10 * time.Second,
		},
		Clock: clock.RealClock{}, Logger: logger,
	})
}

// Pool is what a pool is told, and who signs it.
type Pool struct {
	Authority *pki.Authority
	Directory *directory.Directory
	number    uint64
}

// NewPool returns a pool that is told nothing yet.
func NewPool(t testing.TB) *Pool {
	t.Helper()
	a, err := pki.NewPoolAuthority(PoolName, time.Now())
	check(t, err)
	trusted := func() []*x509.Certificate { return []*x509.Certificate{a.Cert()} }
	return &Pool{Authority: a, Directory: directory.New(directory.Config{
		Pool: PoolName, Trusted: trusted, Speakers: trusted, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})}
}

// Tell has the pool told an entry, whose Pool and Version are not looked at.
func (p *Pool) Tell(t testing.TB, e directory.Entry) {
	t.Helper()
	p.number++
	e.Pool, e.Version = PoolName, p.number
	text, err := e.Sign(p.Authority)
	check(t, err)
	_, err = p.Directory.TakeOfCloud(text)
	check(t, err)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
