package identity

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// poolPatience is how long a hub without keys waits for another one of its pool to have them, looking each poolLook.
	poolPatience, poolLook = 30 * time.Second, 5 * time.Second
)

// fromPool takes the key that has signed a token from what another hub of the pool has; false if it cannot.
//
// Whoever shows keys to a pool could show one of his own. But kube-apiserver names its keys by their hashes (keyIDFromPublicKey in
// pkg/serviceaccount/jwt.go of Kubernetes), and the cloud has taken this token, so the name in it is the cluster's word: a key with this
// hash that has signed the token is the cluster's. No other key of the pool's is taken. Clusters with an external signer may
// name keys otherwise; there the cloud is asked.
func (k *keys) fromPool(ctx context.Context, t *token) bool {
	if k.shared == nil {
		return false
	}
	for began := k.clock.Now(); k.clock.Since(began) < poolPatience; {
		raw, wait := k.shared(ctx)
		if raw != nil {
			set, err := proven(t, raw)
			if err != nil {
				k.logger.Warn("the pool's copy of the cluster's keys is not used", "err", err)
				return false
			}
			reduced, err := json.Marshal(set.Keys)
			if err == nil {
				err = k.use(set, reduced)
			}
			k.report(err)
			return true
		}
		if !wait {
			return false
		}
		timer := k.clock.NewTimer(k.jitter(poolLook))
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
	return false
}

// proven is the one key of a set that a token proves. The token must be one that the cloud has taken.
func proven(t *token, raw []byte) (*keySet, error) {
	set, err := parseKeys(t.claims.Issuer, raw)
	if err != nil {
		return nil, err
	}
	set.Keys.Keys = slices.DeleteFunc(set.Keys.Keys, func(j jose.JSONWebKey) bool { return t.kid == "" || j.KeyID != t.kid || nameOf(j.Key) != t.kid })
	own := *t // whoever offered it may still read its claims
	return set, own.verify(&set.Keys)
}

// nameOf is what kube-apiserver calls a key: its hash.
func nameOf(public any) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
