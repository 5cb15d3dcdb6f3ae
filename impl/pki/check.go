package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

var (
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidHosts        = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// claims is what requests and certificates both say.
type claims struct {
	name  pkix.Name
	hosts []string
	other []string // mail addresses and URIs
	key   crypto.PublicKey
}

func hostsOf(ips []net.IP, names []string) []string {
	hosts := slices.Clone(names)
	for _, ip := range ips {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// CheckRequest reports whether a request asks for the certificate of this subject, and for nothing else. Subject.Hosts
// are the addresses that are known to be the subject's.
func (i Identity) CheckRequest(r *x509.CertificateRequest, s Subject) error {
	if err := r.CheckSignature(); err != nil {
		return mismatch("public key", keyType(r.PublicKey), "the key of the requester: the request is not signed by it ("+
			err.Error()+")")
	}
	for _, e := range r.Extensions {
		if !e.Id.Equal(oidHosts) {
			return mismatch("extension", e.Id, "addresses of a server only")
		}
	}
	c := claims{
		name: r.Subject, hosts: hostsOf(r.IPAddresses, r.DNSNames), other: slices.Clone(r.EmailAddresses), key: r.PublicKey,
	}
	for _, u := range r.URIs {
		c.other = append(c.other, u.String())
	}
	return i.checkClaims(c, s)
}

// CheckCertificate reports whether a certificate is that of this subject, and nothing else. It says nothing about who
// signed it, nor whether it is valid now: see Verify.
func (i Identity) CheckCertificate(cert *x509.Certificate, s Subject) error {
	c := claims{
		name: cert.Subject, hosts: hostsOf(cert.IPAddresses, cert.DNSNames), other: slices.Clone(cert.EmailAddresses),
		key: cert.PublicKey,
	}
	for _, u := range cert.URIs {
		c.other = append(c.other, u.String())
	}
	if i.Leads != "" { // its holder does not know whether it may lead
		c.name.Organization = slices.DeleteFunc(slices.Clone(c.name.Organization),
			func(o string) bool { return o == i.Leads })
	}
	if err := i.checkClaims(c, s); err != nil {
		return err
	}
	life := cert.NotAfter.Sub(cert.NotBefore)
	switch {
	case cert.IsCA:
		return mismatch("basic constraints", "an authority", "a certificate that signs none")
	case !sameSet(cert.ExtKeyUsage, i.extKeyUsages()) || len(cert.UnknownExtKeyUsage) > 0:
		return mismatch("extended key usage", fmt.Sprint(cert.ExtKeyUsage, cert.UnknownExtKeyUsage),
			fmt.Sprintf("%s %v", i.Usages(), i.extKeyUsages()))
	case cert.KeyUsage != x509.KeyUsageDigitalSignature:
		return mismatch("key usage", int(cert.KeyUsage), "digital signature")
	case life > i.Life.Most+mostBackdate:
		return mismatch("life", life, fmt.Sprintf("%s at most", i.Life.Most))
	}
	return nil
}

func (i Identity) extKeyUsages() (u []x509.ExtKeyUsage) {
	if i.Client {
		u = append(u, x509.ExtKeyUsageClientAuth)
	}
	if i.Server {
		u = append(u, x509.ExtKeyUsageServerAuth)
	}
	return u
}

func (i Identity) checkClaims(c claims, s Subject) error {
	if err := i.check(s); err != nil {
		return err
	}
	if want := s.fill(i.CommonName); c.name.CommonName != want {
		return mismatch("common name", c.name.CommonName, want)
	}
	organizations := make([]string, len(i.Organizations))
	for n, o := range i.Organizations {
		organizations[n] = s.fill(o)
	}
	if !sameSet(c.name.Organization, organizations) {
		allowed := "exactly " + strings.Join(organizations, ", ")
		if len(organizations) == 0 {
			allowed = "none"
		}
		return mismatch("organization", c.name.Organization, allowed)
	}
	names := 0
	for _, a := range c.name.Names {
		switch {
		case a.Type.Equal(oidCommonName):
			names++
		case !a.Type.Equal(oidOrganization):
			return mismatch("subject", fmt.Sprint(a.Type, "=", a.Value), "a common name and organizations only")
		}
	}
	if names != 1 {
		return mismatch("common name", fmt.Sprint(names, " of them"), "one")
	}
	if len(c.other) > 0 {
		return mismatch("alternative names", c.other, "no mail address and no URI")
	}
	if err := i.checkHosts(c.hosts, s.Hosts); err != nil {
		return err
	}
	if k := keyType(c.key); !slices.Contains(i.Keys, k) {
		return mismatch("key", k, strings.Join(i.Keys, ", "))
	}
	return nil
}

func (i Identity) checkHosts(hosts, known []string) error {
	if !i.Server {
		if len(hosts) > 0 {
			return mismatch("addresses", hosts, "none: it is a client's")
		}
		return nil
	}
	if err := checkForm(hosts); err != nil {
		return err
	}
	for _, h := range hosts {
		if !slices.ContainsFunc(known, func(k string) bool { return k == h || sameIP(k, h) }) {
			return mismatch("addresses", h, "of "+short(strings.Join(known, ", ")))
		}
	}
	return nil
}

func sameIP(a, b string) bool {
	ip := net.ParseIP(a)
	return ip != nil && ip.Equal(net.ParseIP(b))
}

// sameSet reports whether two lists hold the same, each once.
func sameSet[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for n, x := range a {
		if !slices.Contains(b, x) || slices.Contains(a[:n], x) {
			return false
		}
	}
	return true
}

func keyType(k crypto.PublicKey) string {
	switch k := k.(type) {
	case *ecdsa.PublicKey:
		return "ECDSA " + k.Curve.Params().Name
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", k.N.BitLen())
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return fmt.Sprintf("%T", k)
}

// Verify reports whether one of the authorities vouches for a chain at a time, leaf first, for what the identity is
// used for.
func (i Identity) Verify(chain []*x509.Certificate, authorities []*x509.Certificate, now time.Time) error {
	if len(chain) == 0 {
		return mismatch("certificates", "none", "a certificate, and those between it and an authority")
	}
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, a := range authorities {
		o.Roots.AddCert(a)
	}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	leaf := chain[0]
	if err := CheckSpan(leaf, now); err != nil {
		return err
	}
	for _, usage := range i.extKeyUsages() {
		o.KeyUsages = []x509.ExtKeyUsage{usage}
		if _, err := leaf.Verify(o); err != nil {
			return mismatch("issuer", leaf.Issuer, "an authority that vouches for it: "+err.Error())
		}
	}
	return nil
}

// CheckSpan reports whether a certificate is valid at a time.
func CheckSpan(cert *x509.Certificate, now time.Time) error {
	switch {
	case now.Before(cert.NotBefore):
		return mismatch("begin", cert.NotBefore.UTC().Format(time.RFC3339), "not after "+now.UTC().Format(time.RFC3339))
	case now.After(cert.NotAfter):
		return mismatch("end", cert.NotAfter.UTC().Format(time.RFC3339), "not before "+now.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckHeld is for a holder that knows no authority: a certificate is of its own key, and all that CheckCertificate
// asks. It returns the chain, leaf first.
func (i Identity) CheckHeld(p *Pair, s Subject) ([]*x509.Certificate, error) {
	chain, err := ParseCertificates(p.CertPEM)
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(p.KeyPEM)
	if err != nil {
		return nil, err
	}
	if !sameKey(chain[0].PublicKey, key.Public()) {
		return nil, mismatch("public key", keyType(chain[0].PublicKey)+" of another", "that of the private key")
	}
	return chain, i.CheckCertificate(chain[0], s)
}

// CheckPair is for a holder: all that CheckHeld and Verify ask of what it got.
func (i Identity) CheckPair(p *Pair, s Subject, authorities []*x509.Certificate, now time.Time) error {
	chain, err := i.CheckHeld(p, s)
	if err != nil {
		return err
	}
	return i.Verify(chain, authorities, now)
}

// Recognize tells what a certificate is, by what stands in it alone. Nobody may have vouched for it.
func Recognize(cert *x509.Certificate) (Identity, Subject, error) {
	kinds := []string{}
	for _, i := range Identities() {
		kinds = append(kinds, string(i.Kind))
		s, ok := i.Read(cert.Subject.CommonName)
		if !ok {
			continue
		}
		for _, o := range cert.Subject.Organization {
			if pool, found := strings.CutPrefix(o, contract.PoolGroupPrefix); found {
				s.Pool = pool
			}
		}
		s.Hosts = hostsOf(cert.IPAddresses, cert.DNSNames)
		if i.CheckCertificate(cert, s) == nil {
			return i, s, nil
		}
	}
	return Identity{}, Subject{}, mismatch("certificate", cert.Subject, "one of a "+strings.Join(kinds, ", "))
}

func sameKey(a, b crypto.PublicKey) bool {
	one, err := x509.MarshalPKIXPublicKey(a)
	other, also := x509.MarshalPKIXPublicKey(b)
	return err == nil && also == nil && bytes.Equal(one, other)
}

// poolAuthority is the name of the authority of a pool.
func poolAuthority(pool string) string { return contract.PoolGroupPrefix + pool }

// CheckAuthority reports whether a certificate is that of a pool's authority: it names the pool and signs leaves only.
func CheckAuthority(cert *x509.Certificate, pool string) error {
	switch want := poolAuthority(pool); {
	case cert.Subject.CommonName != want:
		return mismatch("authority", cert.Subject.CommonName, want)
	case !cert.IsCA || !cert.BasicConstraintsValid || cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return mismatch("authority", cert.Subject.CommonName, "a certificate that may sign others")
	case cert.MaxPathLen != 0 || !cert.MaxPathLenZero:
		return mismatch("path length", cert.MaxPathLen, "0: it signs no other authority")
	}
	return nil
}
