package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// Pair is a certificate with its private key.
type Pair struct {
	CertPEM, KeyPEM []byte
}

// TLS returns the pair as crypto/tls wants it.
func (p *Pair) TLS() (tls.Certificate, error) {
	c, err := tls.X509KeyPair(p.CertPEM, p.KeyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("load key pair: %w", err)
	}
	return c, nil
}

// Write writes <dir>/<name>.crt and <dir>/<name>.key, readable by this user only, and returns their paths.
func (p *Pair) Write(dir, name string) (cert, key string, err error) {
	if cert, err = WriteFile(dir, name+".crt", p.CertPEM); err != nil {
		return "", "", err
	}
	if key, err = WriteFile(dir, name+".key", p.KeyPEM); err != nil {
		return "", "", err
	}
	return cert, key, nil
}

// WriteFile writes a file of credentials, readable by this user only, and returns its path. The file is
// replaced in one step, so a process that reloads it never sees half of it.
func WriteFile(dir, name string, data []byte) (string, error) {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(dir, "."+name+"-*") // mode 0600
	if err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return path, nil
}

// SigningKey is the key that an apiserver signs service-account tokens with.
type SigningKey struct {
	PrivatePEM, PublicPEM []byte
}

// NewSigningKey makes a signing key.
func NewSigningKey() (*SigningKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create signing key: %w", err)
	}
	private, err := encodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("create signing key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("create signing key: %w", err)
	}
	return &SigningKey{
		PrivatePEM: private,
		PublicPEM:  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}, nil
}
