package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Signed reports, as an error, that the authorities of a bundle have not signed the kubelet's certificate; from says
// where the bundle is.
func Signed(certPEM, keyPEM, bundle []byte, from string) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("%s: it holds no certificate", from)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, raw := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(raw); err == nil {
			between.AddCert(c)
		}
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: pair.Leaf.NotBefore,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fmt.Errorf("the kubelet's certificate is not signed by the authority that is known, %s: name the file of "+
			"the one that signs it by --client-ca-file", from)
	}
	return err
}
