package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	backdate = time.Hour
	lifetime = 24 * time.Hour
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// LoadAuthority returns an authority that somebody else made: kubeadm, for one.
func LoadAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("load authority: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("load authority: %s is no authority", pair.Leaf.Subject)
	}
	return &Authority{cert: pair.Leaf, key: key, pem: certPEM}, nil
}

// NewAuthority returns an authority with a fresh key and a self-signed certificate for name.
func NewAuthority(name string) (*Authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	key, der, err := sign(template, nil)
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	return &Authority{cert: cert, key: key, pem: encodeCert(der)}, nil
}

// CertPEM is the authority's certificate, for those who trust it.
func (a *Authority) CertPEM() []byte { return a.pem }

// Pool is a pool that holds this authority only.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Request says what a certificate is for. Server certificates name hosts, client certificates a user; one may
// be both.
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
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if r.Lifetime != 0 {
		template.NotAfter = time.Now().Add(r.Lifetime)
	}
	for _, h := range r.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	if len(r.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if r.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if len(template.ExtKeyUsage) == 0 {
		return nil, fmt.Errorf("issue certificate for %s: neither hosts nor client is asked for", r.CommonName)
	}
	key, der, err := sign(template, a)
	if err != nil {
		return nil, fmt.Errorf("issue certificate for %s: %w", r.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate for %s: %w", r.CommonName, err)
	}
	return &Pair{CertPEM: encodeCert(der), KeyPEM: keyPEM}, nil
}

// sign completes the template and signs it by a, or by itself.
func sign(template *x509.Certificate, a *Authority) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template.SerialNumber = serial
	if template.NotAfter.IsZero() {
		template.NotAfter = now.Add(lifetime)
	}
	template.NotBefore = now.Add(-backdate)
	if ended := template.NotAfter.Add(-backdate); ended.Before(template.NotBefore) {
		template.NotBefore = ended
	}
	parent, signer := template, crypto.Signer(key)
	if a != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return key, der, err
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
