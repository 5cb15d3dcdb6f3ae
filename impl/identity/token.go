package identity

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// algorithms are those by which a cluster may sign. Neither "none" nor a shared secret is among them.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512,
	}
}

// maxToken bounds what is parsed. A token with all claims has about 1.2 kB.
const maxToken = 16 << 10

// claims are those of a service account's token (pkg/serviceaccount/claims.go of Kubernetes).
type claims struct {
	jwt.Claims
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount ref    `json:"serviceaccount"`
		Pod            *ref   `json:"pod"`
		Node           *ref   `json:"node"`
	} `json:"kubernetes.io"`
}

type ref struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// ofServiceAccount reports whether the claims are those of a token that a cluster issued for a service account.
func (c *claims) ofServiceAccount() bool {
	k := c.Kubernetes
	return k.Namespace != "" && k.ServiceAccount.Name != "" && k.ServiceAccount.UID != "" &&
		c.Subject == serviceAccountPrefix+k.Namespace+":"+k.ServiceAccount.Name
}

const serviceAccountPrefix = "system:serviceaccount:"

// token is one that a request carries.
type token struct {
	raw    string
	signed *jwt.JSONWebToken // nil: it is none of ours to read
	kid    string
	claims claims // not verified
}

// readToken takes a token apart. What is no signed JWT is none of ours to read; that is no error.
func readToken(raw string) *token {
	t := &token{raw: raw}
	if len(raw) > maxToken || strings.Count(raw, ".") != 2 {
		return t
	}
	signed, err := jwt.ParseSigned(raw, algorithms())
	if err != nil || len(signed.Headers) != 1 || signed.UnsafeClaimsWithoutVerification(&t.claims) != nil {
		t.claims = claims{}
		return t
	}
	t.signed, t.kid = signed, signed.Headers[0].KeyID
	return t
}

// webSocketToken begins the protocol by which browsers send a token (kube-apiserver's
// authentication/request/websocket).
const webSocketToken = "base64url.bearer.authorization.k8s.io."

// bearerOf gives the token of a request as kube-apiserver reads it; carries reports whether there is any credential but
// a certificate. What could be read in two ways is refused: another token may be the one that the cloud took, or none.
func bearerOf(h http.Header) (raw string, carries bool, err error) {
	for _, v := range h["Sec-Websocket-Protocol"] {
		if strings.Contains(v, webSocketToken) {
			return "", true, errors.New("a token in a WebSocket protocol")
		}
	}
	values := h["Authorization"]
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 {
		return "", true, errors.New("more than one Authorization header")
	}
	parts := strings.Split(strings.TrimSpace(values[0]), " ")
	if len(parts) != 2 || !strings.EqualFold(parts[0], "bearer") || parts[1] == "" {
		return "", true, errors.New("an Authorization header that is not \"Bearer <token>\"")
	}
	return parts[1], true, nil
}

// errSignature says that a token is not what it says.
var errSignature = errors.New("no key of the cluster fits its signature")

// verify reports whether one of the keys has signed the token.
func (t *token) verify(all *jose.JSONWebKeySet) error {
	keys := all.Keys
	if t.kid != "" {
		if keys = all.Key(t.kid); len(keys) == 0 {
			return &unknownKeyError{t.kid}
		}
	}
	for _, k := range keys {
		if k.Algorithm != "" && k.Algorithm != t.signed.Headers[0].Algorithm {
			continue
		}
		var verified claims
		if t.signed.Claims(k.Key, &verified) == nil {
			t.claims = verified
			return nil
		}
	}
	return errSignature
}

// unknownKeyError names a key that the cluster did not have when it was asked last.
type unknownKeyError struct{ kid string }

func (e *unknownKeyError) Error() string {
	return fmt.Sprintf("it is signed with key %.64q, which the cluster did not have when it was asked last", e.kid)
}
