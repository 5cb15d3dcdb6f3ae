package pki

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/weir-edge/weir/impl/pki"
)

// Pair is a certificate with its private key.
type Pair = pki.Pair

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
