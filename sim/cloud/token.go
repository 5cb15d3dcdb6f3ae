package cloud

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// tokenLife is how long a token of Retime was valid before its end.
const tokenLife = time.Hour

// Retime returns a token of a service account with another end, signed as the apiserver signs: that gives none for less
// than ten minutes.
func (c *Cloud) Retime(token string, end time.Time) (string, error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	claims := map[string]any{}
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	began := jwt.NewNumericDate(end.Add(-tokenLife))
	claims["exp"], claims["iat"], claims["nbf"] = jwt.NewNumericDate(end), began, began
	block, _ := pem.Decode(c.signing.PrivatePEM)
	if block == nil {
		return "", errors.New("sign token: the key is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return "", fmt.Errorf("sign token: the key is a %T", key)
	}
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: parsed.Headers[0].KeyID},
	}, nil)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// TokenKey is the public key of tokens, as PEM: what everybody may know.
func (c *Cloud) TokenKey() []byte { return c.signing.PublicPEM }
