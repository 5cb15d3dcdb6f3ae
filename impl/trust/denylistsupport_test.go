package trust

import (
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// denier is an authority, and what it says.
type denier struct {
	t         *testing.T
	name      string
	authority *pki.Authority
}

func newDenier(t *testing.T, name string) *denier {
	return &denier{t, name, must(pki.NewPoolAuthority(name, noon))}
}

func (p *denier) trusted() []*x509.Certificate { return []*x509.Certificate{p.authority.Cert()} }

// holder holds nothing yet.
func (p *denier) holder(file string) *HeldDenylist {
	return NewDenylist(DenylistConfig{Pool: p.name, Trusted: p.trusted, File: file, Logger: slog.New(slog.DiscardHandler)})
}

// cert is one that somebody of the pool got at a time.
func (p *denier) cert(k pki.Kind, s pki.Subject, at time.Time) *x509.Certificate {
	s.Pool = p.name
	i := pki.Must(k)
	pair := must(p.authority.Grant(i, s, at, i.Life.Usual))
	return must(pki.ParseCertificates(pair.CertPEM))[0]
}

func (p *denier) text(l Denylist) []byte {
	p.t.Helper()
	return must(l.Sign(p.authority))
}

// first is a list of entries.
func (p *denier) first(at time.Time, entries ...Denial) Denylist {
	l, _ := Denylist{Pool: p.name}.Next(at, entries...)
	return l
}

func (p *denier) take(h *HeldDenylist, l Denylist) {
	p.t.Helper()
	if changed, err := h.Take(p.text(l)); err != nil || !changed {
		p.t.Fatalf("list %d: changed %t, %v", l.Number, changed, err)
	}
}

func nodes(h *HeldDenylist) (names []string) {
	for _, e := range h.Entries() {
		names = append(names, e.Node)
	}
	return names
}
