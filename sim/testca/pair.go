package testca

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/pki"
)

// Pair is a certificate with its private key.
type Pair = pki.Pair

// Keep puts a pair where a hub keeps what it was given for its requests, as if it had asked before.
func Keep(dir string, k pki.Kind, p *Pair) error {
	_, err := WriteBoth(dir, filepath.Base(credential.KeptFile(dir, k)), p)
	return err
}

// WriteBoth writes the key and the certificate into one file, readable by this user only, and returns its path.
func WriteBoth(dir, name string, p *Pair) (string, error) {
	return WriteFile(dir, name, slices.Concat(p.KeyPEM, p.CertPEM))
}

// WriteFile writes a file of credentials, readable by this user only, in one step, and returns its path.
func WriteFile(dir, name string, data []byte) (string, error) { return pki.WriteFile(dir, name, data) }

// SigningKey is the key that an apiserver signs service-account tokens with.
type SigningKey struct {
	PrivatePEM, PublicPEM []byte
}

// NewSigningKey makes a signing key.
func NewSigningKey() (*SigningKey, error) {
	key, err := pki.NewKey()
	if err != nil {
		return nil, fmt.Errorf("create signing key: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("create signing key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("create signing key: %w", err)
	}
	return &SigningKey{
		PrivatePEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		PublicPEM:  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}, nil
}
