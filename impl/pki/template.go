package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Template is what a certificate says. Nobody has checked it: Identity.Template makes one that is as the table wants
// it.
type Template struct {
	CommonName          string
	Organizations       []string
	Hosts               []string // IP addresses and DNS names
	Client, Server      bool
	NotBefore, NotAfter time.Time
}

func (t Template) name() pkix.Name {
	return pkix.Name{CommonName: t.CommonName, Organization: t.Organizations}
}

// addresses sorts hosts into IP addresses and names.
func (t Template) addresses() (ips []net.IP, names []string) {
	for _, h := range t.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, h)
		}
	}
	return ips, names
}

func (t Template) certificate() (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: t.name(), NotBefore: t.NotBefore, NotAfter: t.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	c.IPAddresses, c.DNSNames = t.addresses()
	if t.Server {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if t.Client {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if len(c.ExtKeyUsage) == 0 {
		return nil, fmt.Errorf("certificate of %s: it is neither a client's nor a server's", t.CommonName)
	}
	return c, nil
}

// request is the same as a request, signed by the key that it is for.
func (t Template) request(key crypto.Signer) ([]byte, error) {
	r := &x509.CertificateRequest{Subject: t.name()}
	r.IPAddresses, r.DNSNames = t.addresses()
	der, err := x509.CreateCertificateRequest(rand.Reader, r, key)
	if err != nil {
		return nil, fmt.Errorf("request a certificate of %s: %w", t.CommonName, err)
	}
	return encode(requestType, der), nil
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}
