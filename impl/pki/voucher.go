package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
)

// about puts before a text what it is about, so that a signature is never good for something else. No certificate
// begins so.
func about(what string, text []byte) []byte {
	return fmt.Appendf(nil, "weir %s %d\n%s", what, len(text), text)
}

// Vouch signs a text that is about something.
func (a *Authority) Vouch(what string, text []byte) ([]byte, error) {
	return VouchAs(a.key, what, text)
}

// VouchAs signs a text that is about something, as the holder of a certificate of the key.
func VouchAs(key crypto.Signer, what string, text []byte) ([]byte, error) {
	sum := sha256.Sum256(about(what, text))
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("sign a %s: %w", what, err)
	}
	return signature, nil
}

// Vouches reports whether an authority has signed a text that is about something.
func Vouches(authority *x509.Certificate, what string, text, signature []byte) bool {
	return authority.IsCA && VouchedBy(authority, what, text, signature)
}

// VouchedBy reports whether the holder of a certificate has signed a text that is about something. It does not say
// whose certificate that is.
func VouchedBy(holder *x509.Certificate, what string, text, signature []byte) bool {
	var algorithm x509.SignatureAlgorithm
	switch holder.PublicKey.(type) {
	case *ecdsa.PublicKey:
		algorithm = x509.ECDSAWithSHA256
	case *rsa.PublicKey:
		algorithm = x509.SHA256WithRSA
	}
	return holder.CheckSignature(algorithm, about(what, text), signature) == nil
}
