package coordinator

import (
	"crypto/x509"
	"net/url"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

// TestLeaderHubIsKnown: who answers in the place of a leader hub has to show the certificate of the hub of that node,
// in that pool.
func TestLeaderHubIsKnown(t *testing.T) {
	now := time.Now()
	pool, stranger := must(pki.NewPoolAuthority("harbour", now)), must(pki.NewPoolAuthority("harbour", now))
	s := Server{URL: &url.URL{Scheme: "https", Host: "10.0.0.1:10269"}, Node: "edge-1"}
	for name, c := range map[string]struct {
		by   *pki.Authority
		kind pki.Kind
		of   pki.Subject
		here string // the pool of the one that asks
		in   bool
	}{
		"the hub of the node":     {pool, pki.Hub, pki.Subject{Pool: "harbour", Node: "edge-1"}, "harbour", true},
		"the hub of another node": {pool, pki.Hub, pki.Subject{Pool: "harbour", Node: "edge-2"}, "harbour", false},
		"the hub of another pool": {pool, pki.Hub, pki.Subject{Pool: "harbour", Node: "edge-1"}, "quay", false},
		"by another authority":    {stranger, pki.Hub, pki.Subject{Pool: "harbour", Node: "edge-1"}, "harbour", false},
		"a person of the same name": {
			pool, pki.Viewer, pki.Subject{Pool: "harbour", Name: "system-node-edge-1"}, "harbour", false,
		},
	} {
		pair, err := c.by.Grant(pki.Must(c.kind), c.of, now, time.Hour)
		check(t, err)
		chain, err := pki.ParseCertificates(pair.CertPEM)
		check(t, err)
		if err := s.demand(Config{Pool: c.here, Roots: fixed{pool}}, chain); (err == nil) != c.in {
			t.Errorf("%s: %v, want in: %t", name, err, c.in)
		}
	}
	if s.demand(Config{Pool: "harbour", Roots: fixed{pool}}, nil) == nil {
		t.Error("nobody is taken for a leader hub")
	}
}

// fixed is an authority that stays.
type fixed struct{ *pki.Authority }

// Get implements uplink.Authorities.
func (f fixed) Get() *x509.CertPool { return f.Pool() }

// List implements uplink.Authorities.
func (f fixed) List() []*x509.Certificate { return []*x509.Certificate{f.Cert()} }
