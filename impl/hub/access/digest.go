package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// digest stands for a token. Tokens are not kept.
type digest [sha256.Size]byte

// shown is what a request shows to be known by. It is hashed once, and read when somebody first asks what it says;
// requests of one connection that show the same one share it.
type shown struct {
	digest
	authorization, protocol string
	claims                  func() claims
}

// tokenOf is that of a request; nil: kube-apiserver would find none in it.
func tokenOf(h http.Header) *shown {
	if !uplink.HasToken(h) {
		return nil
	}
	t := &shown{authorization: h.Get("Authorization"), protocol: h.Get("Sec-Websocket-Protocol")}
	room := make([]byte, 0, len(t.authorization)+len(t.protocol)+8)
	t.digest = sha256.Sum256(put(put(room, t.authorization), t.protocol))
	t.claims = sync.OnceValue(func() claims { return claimsOf(t.authorization) })
	return t
}

// shownBy reports whether a request with a token shows this one.
func (t *shown) shownBy(h http.Header) bool {
	return t != nil && t.authorization == h.Get("Authorization") && t.protocol == h.Get("Sec-Websocket-Protocol")
}

// podOf is the pod that a token says it is bound to; the zero value: it says none. Only the cloud, or a proof, can say
// that it is.
func (t *shown) podOf() nodelocal.Pod {
	k := t.claims().Kubernetes
	return nodelocal.Pod{Namespace: k.Namespace, Name: k.Pod.Name, UID: k.Pod.UID}
}

// claims are what a token of a service account says of itself.
type claims struct {
	Subject    string `json:"sub"`
	Kubernetes struct {
		Namespace string `json:"namespace"`
		Pod       struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// claimsOf reads those of the token of an Authorization header; none of another one.
func claimsOf(authorization string) (c claims) {
	_, token, _ := strings.Cut(authorization, " ")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil || !strings.HasPrefix(c.Subject, "system:serviceaccount:") {
		return claims{}
	}
	return c
}

// room is for what a digest is made of. Each request needs some: they take memory only where there is more of it.
type room [2 << 10]byte

// put appends a string so that no two sequences of strings are the same bytes.
func put(b []byte, s string) []byte {
	n := len(s)
	return append(append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), s...)
}
