package credential

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
)

// localLife is that of what a kubelet shows to its hub where the cloud has given it no certificate. Nobody renews it:
// it counts at one hub, beside which it lies.
const localLife = 10 * 365 * 24 * time.Hour

// localPrefix begins the name of an authority that signs nothing else.
const localPrefix = "weir:local:"

// IsLocal reports whether a certificate is one of NewLocal, which nobody takes but the hub beside it.
func IsLocal(leaf *x509.Certificate) bool {
	return leaf != nil && strings.HasPrefix(leaf.Issuer.CommonName, localPrefix)
}

// NewLocal makes a certificate with its key by which a kubelet is its node at its own hub, and the authority that
// signed it, all in PEM. The key of the authority is kept nowhere: it signs nothing else.
func NewLocal(node string, now time.Time) (authority, pair []byte, err error) {
	a, err := pki.NewAuthority(localPrefix+node, now, localLife)
	if err != nil {
		return nil, nil, err
	}
	p, err := a.Issue(pki.Template{
		CommonName: contract.NodeUserPrefix + node, Organizations: []string{contract.NodesGroup}, Client: true,
		NotBefore: a.Cert().NotBefore, NotAfter: a.Cert().NotAfter,
	})
	if err != nil {
		return nil, nil, err
	}
	return a.CertPEM(), slices.Concat(p.CertPEM, p.KeyPEM), nil
}

// Split gives the certificates and the key of such a pair, each in PEM.
func Split(pair []byte) (cert, key []byte) {
	for block, rest := pem.Decode(pair); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			cert = append(cert, pem.EncodeToMemory(block)...)
		} else {
			key = append(key, pem.EncodeToMemory(block)...)
		}
	}
	return cert, key
}

// CheckLocal reports whether such files belong together, and are of a node.
func CheckLocal(authority, pair []byte, node string, now time.Time) error {
	p, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return errors.New("there is no authority")
	}
	if got := p.Leaf.Subject.CommonName; got != contract.NodeUserPrefix+node {
		return fmt.Errorf("it is of %q: want %s", got, contract.NodeUserPrefix+node)
	}
	_, err = p.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}
