package testca

import (
	"crypto/x509"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

const (
	backdate = time.Hour
	lifetime = 24 * time.Hour
	longest  = 10 * 365 * lifetime // of an authority: no run outlives it
)

// Authority is an authority that signs what Weir's table says, and anything else.
type Authority struct {
	inner *pki.Authority
}

// LoadAuthority returns an authority that somebody else made: kubeadm, for one.
func LoadAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	a, err := pki.LoadAuthority(certPEM, keyPEM)
	return &Authority{a}, err
}

// NewAuthority returns an authority with a fresh key and a self-signed certificate for name.
func NewAuthority(name string) (*Authority, error) {
	a, err := pki.NewAuthority(name, time.Now(), longest)
	return &Authority{a}, err
}

// NewPoolAuthority returns the authority of a pool.
func NewPoolAuthority(pool string) (*Authority, error) {
	a, err := pki.NewPoolAuthority(pool, time.Now())
	return &Authority{a}, err
}

// CertPEM is the authority's certificate, for those who trust it.
func (a *Authority) CertPEM() []byte { return a.inner.CertPEM() }

// Signer is what signs what a pool is told.
func (a *Authority) Signer() *pki.Authority { return a.inner }

// Kept is the authority, with its key, as weir-manager keeps it.
func (a *Authority) Kept() (map[string][]byte, error) {
	return (&pki.Succession{Signer: a.inner}).Files()
}

// Pool is a pool that holds this authority only.
func (a *Authority) Pool() *x509.CertPool { return a.inner.Pool() }

// IssueTo signs the certificate of one of Weir's identities, with a fresh key. A life of 0 is the usual one, one below
// zero has ended.
func (a *Authority) IssueTo(k pki.Kind, s pki.Subject, life time.Duration) (*Pair, error) {
	i, err := pki.Of(k)
	if err != nil {
		return nil, err
	}
	if life == 0 {
		life = i.Life.Usual
	}
	t, err := i.Template(s, time.Now(), life)
	if err != nil {
		return nil, fmt.Errorf("issue certificate of a %s: %w", k, err)
	}
	t.NotBefore, t.NotAfter = span(life)
	return a.inner.Issue(t)
}

// Answer signs a request that somebody else has judged, for any life.
func (a *Authority) Answer(i pki.Identity, s pki.Subject, r *x509.CertificateRequest, life time.Duration) (
	[]byte, error) {
	t, err := i.Template(s, time.Now(), life)
	if err != nil {
		return nil, err
	}
	return a.inner.Sign(t, r.PublicKey)
}

// Request says what a certificate that is not Weir's is for: one of kube-apiserver, of a component of Kubernetes, of an
// attacker. Server certificates name hosts, client certificates a user; one may be both.
type Request struct {
	CommonName    string
	Organizations []string
	Hosts         []string // IP addresses and DNS names of a server
	Client        bool
	// Lifetime overrides the default of a day. One below zero has ended.
	Lifetime time.Duration
}

// Issue signs a certificate with a fresh key.
func (a *Authority) Issue(r Request) (*Pair, error) {
	if r.Lifetime == 0 {
		r.Lifetime = lifetime
	}
	t := pki.Template{
		CommonName: r.CommonName, Organizations: r.Organizations, Hosts: r.Hosts, Client: r.Client, Server: len(r.Hosts) > 0,
	}
	t.NotBefore, t.NotAfter = span(r.Lifetime)
	return a.inner.Issue(t)
}

// span begins an hour ago: nodes' clocks may be behind.
func span(life time.Duration) (begin, end time.Time) {
	now := time.Now()
	begin, end = now.Add(-backdate), now.Add(life)
	if ended := end.Add(-backdate); ended.Before(begin) {
		begin = ended
	}
	return begin, end
}
