package denylist

import (
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pool is an authority, and what it says.
type pool struct {
	t         *testing.T
	name      string
	authority *pki.Authority
}

func newPool(t *testing.T, name string) *pool {
	return &pool{t, name, must(pki.NewPoolAuthority(name, now))}
}

func (p *pool) trusted() []*x509.Certificate { return []*x509.Certificate{p.authority.Cert()} }

// holder holds nothing yet.
func (p *pool) holder(file string) *Held {
	return New(Config{Pool: p.name, Trusted: p.trusted, File: file, Logger: slog.New(slog.DiscardHandler)})
}

// cert is one that somebody of the pool got at a time.
func (p *pool) cert(k pki.Kind, s pki.Subject, at time.Time) *x509.Certificate {
	s.Pool = p.name
	i := pki.Must(k)
	pair := must(p.authority.Grant(i, s, at, i.Life.Usual))
	return must(pki.ParseCertificates(pair.CertPEM))[0]
}

func (p *pool) text(l List) []byte {
	p.t.Helper()
	return must(l.Sign(p.authority))
}

// first is a list of entries.
func (p *pool) first(at time.Time, entries ...Entry) List {
	l, _ := List{Pool: p.name}.Next(at, entries...)
	return l
}

func (p *pool) take(h *Held, l List) {
	p.t.Helper()
	if changed, err := h.Take(p.text(l)); err != nil || !changed {
		p.t.Fatalf("list %d: changed %t, %v", l.Number, changed, err)
	}
}

func nodes(h *Held) (names []string) {
	for _, e := range h.Entries() {
		names = append(names, e.Node)
	}
	return names
}
