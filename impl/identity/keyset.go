package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// keySet is what tokens are verified by.
type keySet struct {
	Issuer string             `json:"issuer"`
	Keys   jose.JSONWebKeySet `json:"jwks"`
}

// parseKeys reads a set of keys; those that are of no use for tokens are left out.
func parseKeys(issuer string, raw []byte) (*keySet, error) {
	s := &keySet{Issuer: issuer}
	if err := json.Unmarshal(raw, &s.Keys); err != nil {
		return nil, fmt.Errorf("keys of the cluster: %w", err)
	}
	s.Keys.Keys = slices.DeleteFunc(s.Keys.Keys, func(k jose.JSONWebKey) bool {
		return !k.IsPublic() || !k.Valid() || k.Use != "" && k.Use != "sig"
	})
	if len(s.Keys.Keys) == 0 || issuer == "" {
		return nil, errors.New("keys of the cluster: there is none that is public and signs, or no issuer")
	}
	return s, nil
}

// proven is the one key of a set that a token proves. The token must be one that the cloud has taken.
func proven(t *token, raw []byte) (*keySet, error) {
	set, err := parseKeys(t.claims.Issuer, raw)
	if err != nil {
		return nil, err
	}
	set.Keys.Keys = slices.DeleteFunc(set.Keys.Keys, func(j jose.JSONWebKey) bool {
		return t.kid == "" || j.KeyID != t.kid || nameOf(j.Key) != t.kid
	})
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
