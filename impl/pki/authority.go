package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"
)

// AuthorityLife is how long the authority of a pool lives.
const AuthorityLife = 5 * 365 * day

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// NewPoolAuthority returns the authority of a pool, with a fresh key.
func NewPoolAuthority(pool string, now time.Time) (*Authority, error) {
	if len(pool) > maxPool || !subdomain.MatchString(pool) {
		return nil, mismatch("pool", pool, "small letters, digits, - and ., 63 at most")
	}
	return NewAuthority(poolAuthority(pool), now, AuthorityLife)
}

// PoolAuthority is NewPoolAuthority, signed by another authority. Those who verify trust it alone, not the one above
// it.
func (a *Authority) PoolAuthority(pool string, now time.Time) (*Authority, error) {
	life := min(AuthorityLife, a.cert.NotAfter.Sub(now))
	switch {
	case len(pool) > maxPool || !subdomain.MatchString(pool):
		return nil, mismatch("pool", pool, "small letters, digits, - and ., 63 at most")
	case a.cert.MaxPathLenZero || a.cert.MaxPathLen == 0:
		return nil, mismatch("path length", 0, "1 or more, or none: "+a.cert.Subject.String()+" may sign no authority")
	case life < longest:
		return nil, mismatch("end", a.cert.NotAfter.UTC().Format(time.RFC3339), "at least "+longest.String()+" from now")
	}
	return newAuthority(poolAuthority(pool), now, life, a)
}

// NewAuthority returns an authority with a fresh key. It signs no other authority.
func NewAuthority(name string, now time.Time, life time.Duration) (*Authority, error) {
	return newAuthority(name, now, life, nil)
}

func newAuthority(name string, now time.Time, life time.Duration, by *Authority) (*Authority, error) {
	fail := func(err error) (*Authority, error) { return nil, fmt.Errorf("create authority %s: %w", name, err) }
	key, err := NewKey()
	if err != nil {
		return fail(err)
	}
	serial, err := newSerial()
	if err != nil {
		return fail(err)
	}
	begin, end := span(now, life)
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: begin, NotAfter: end,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	parent, signer := c, crypto.Signer(key)
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		return fail(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return fail(err)
	}
	return &Authority{cert: cert, key: key, pem: encode(certType, der)}, nil
}

// LoadAuthority returns an authority that was made before, or by somebody else.
func LoadAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	fail := func(err error) (*Authority, error) { return nil, fmt.Errorf("load authority: %w", err) }
	certs, err := ParseCertificates(certPEM)
	if err != nil {
		return fail(err)
	}
	key, err := ParseKey(keyPEM)
	if err != nil {
		return fail(err)
	}
	switch cert := certs[0]; {
	case !cert.IsCA:
		return fail(mismatch("certificate", cert.Subject, "one of an authority"))
	case !sameKey(cert.PublicKey, key.Public()):
		return fail(mismatch("key", keyType(key.Public()), "that of the certificate of "+cert.Subject.String()))
	default:
		return &Authority{cert: cert, key: key, pem: encode(certType, cert.Raw)}, nil
	}
}

// Cert is the authority's certificate.
func (a *Authority) Cert() *x509.Certificate { return a.cert }

// CertPEM is the same for those who trust it.
func (a *Authority) CertPEM() []byte { return a.pem }

// KeyPEM is the authority's key, for where it is kept.
func (a *Authority) KeyPEM() ([]byte, error) { return EncodeKey(a.key) }

// Pool holds this authority only.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Sign signs whatever a template says for a public key.
func (a *Authority) Sign(t Template, public crypto.PublicKey) ([]byte, error) {
	c, err := t.certificate()
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", t.CommonName, err)
	}
	return encode(certType, der), nil
}

// Issue is Sign with a fresh key.
func (a *Authority) Issue(t Template) (*Pair, error) {
	key, err := NewKey()
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", t.CommonName, err)
	}
	keyPEM, err := EncodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", t.CommonName, err)
	}
	certPEM, err := a.Sign(t, key.Public())
	if err != nil {
		return nil, err
	}
	return &Pair{CertPEM: certPEM, KeyPEM: keyPEM}, nil
}

// IssuedBy reports whether an authority has signed a leaf.
func IssuedBy(leaf, authority *x509.Certificate) bool {
	return bytes.Equal(leaf.RawIssuer, authority.RawSubject) && leaf.CheckSignatureFrom(authority) == nil
}

// errEnded is of an authority whose certificates would be of no use.
var errEnded = errors.New("the authority ends before a certificate could live for the shortest time: replace it")

// Answer signs a request for a certificate of this subject, if that is what it asks for. The certificate does not
// outlive its authority.
func (a *Authority) Answer(i Identity, s Subject, r *x509.CertificateRequest, now time.Time, life time.Duration) (
	[]byte, error) {
	return a.AnswerFrom(time.Time{}, i, s, r, now, life)
}

// AnswerFrom is Answer with a certificate that begins at a time or later: those of its holder that began before are
// refused.
func (a *Authority) AnswerFrom(begin time.Time, i Identity, s Subject, r *x509.CertificateRequest, now time.Time,
	life time.Duration) ([]byte, error) {
	if err := i.CheckRequest(r, s); err != nil {
		return nil, err
	}
	if err := i.CheckLife(life); err != nil {
		return nil, err
	}
	if i.Issuer == PoolIssuer {
		if err := CheckAuthority(a.cert, s.Pool); err != nil {
			return nil, err
		}
	}
	if left := a.cert.NotAfter.Sub(now); left < life {
		life = left
	}
	if life < i.Life.Least {
		return nil, errEnded
	}
	asked := s
	asked.Hosts = hostsOf(r.IPAddresses, r.DNSNames)
	t, err := i.Template(asked, now, life)
	if err != nil {
		return nil, err
	}
	if t.NotBefore.Before(begin) {
		t.NotBefore = begin
	}
	return a.Sign(t, r.PublicKey)
}

// Grant is Answer with a fresh key, for those who make files by hand.
func (a *Authority) Grant(i Identity, s Subject, now time.Time, life time.Duration) (*Pair, error) {
	key, err := NewKey()
	if err != nil {
		return nil, fmt.Errorf("key of a %s: %w", i.Kind, err)
	}
	text, err := i.Request(s, key)
	if err != nil {
		return nil, err
	}
	r, err := ParseRequest(text)
	if err != nil {
		return nil, err
	}
	certPEM, err := a.Answer(i, s, r, now, life)
	if err != nil {
		return nil, err
	}
	keyPEM, err := EncodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("key of a %s: %w", i.Kind, err)
	}
	return &Pair{CertPEM: certPEM, KeyPEM: keyPEM}, nil
}

// Request is the request of this subject for a certificate of its key.
func (i Identity) Request(s Subject, key crypto.Signer) ([]byte, error) {
	t, err := i.Template(s, time.Time{}, 0)
	if err != nil {
		return nil, err
	}
	return t.request(key)
}
