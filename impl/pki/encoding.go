package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	certType    = "CERTIFICATE"
	keyBlock    = "PRIVATE KEY"
	requestType = "CERTIFICATE REQUEST"

	// MaxRequest is how large a request may be, in PEM.
	MaxRequest = 8 << 10
	// MaxPEM is how large a file of certificates or of a key may be.
	MaxPEM   = 256 << 10
	maxCerts = 64
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

// NewKey makes a private key.
func NewKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// EncodeKey is a private key as PEM.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encode(keyBlock, der), nil
}

// ParseKey reads a PEM file of one private key.
func ParseKey(text []byte) (crypto.Signer, error) {
	const allowed = "one private key in PEM (PKCS #8, EC or RSA)"
	block, rest := pem.Decode(bounded(text))
	if block != nil && block.Type == "EC PARAMETERS" { // openssl writes it first
		block, rest = pem.Decode(rest)
	}
	if block == nil || strings.TrimSpace(string(rest)) != "" {
		return nil, mismatch("key", fmt.Sprintf("%d bytes", len(text)), allowed)
	}
	var key any
	var err error
	switch block.Type {
	case keyBlock:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, mismatch("key", block.Type, allowed)
	}
	if err != nil {
		return nil, mismatch("key", block.Type, allowed+": "+err.Error())
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, mismatch("key", fmt.Sprintf("%T", key), allowed)
	}
	return signer, nil
}

func bounded(text []byte) []byte {
	if len(text) > MaxPEM {
		return nil
	}
	return text
}

// ParseCertificates reads a PEM file of certificates and nothing else.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	const allowed = "1 to 64 certificates in PEM, 256 KiB at most, and nothing else"
	var certs []*x509.Certificate
	rest := bounded(text)
	for len(strings.TrimSpace(string(rest))) > 0 {
		block, after := pem.Decode(rest)
		if block == nil || block.Type != certType || len(certs) == maxCerts {
			return nil, mismatch("certificates", fmt.Sprintf("%d bytes", len(text)), allowed)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, mismatch("certificates", fmt.Sprintf("%d bytes", len(text)), allowed+": "+err.Error())
		}
		certs, rest = append(certs, c), after
	}
	if len(certs) == 0 {
		return nil, mismatch("certificates", fmt.Sprintf("%d bytes", len(text)), allowed)
	}
	return certs, nil
}

// EncodeCertificates is what ParseCertificates reads.
func EncodeCertificates(certs []*x509.Certificate) []byte {
	var text []byte
	for _, c := range certs {
		text = append(text, encode(certType, c.Raw)...)
	}
	return text
}

// ParseRequest reads a PEM file of one request.
func ParseRequest(text []byte) (*x509.CertificateRequest, error) {
	const allowed = "one certificate request in PEM, 8 KiB at most"
	if len(text) > MaxRequest {
		return nil, mismatch("request", fmt.Sprintf("%d bytes", len(text)), allowed)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != requestType || strings.TrimSpace(string(rest)) != "" {
		return nil, mismatch("request", fmt.Sprintf("%d bytes", len(text)), allowed)
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, mismatch("request", fmt.Sprintf("%d bytes", len(text)), allowed+": "+err.Error())
	}
	return r, nil
}
