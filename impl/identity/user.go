package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// User is who calls, as far as it is known here.
type User struct {
	Name   string // as the cloud calls it; "token:" and the beginning of its hash if only the cloud could tell
	UID    string
	Groups []string
	// Node tells that it is this node, by its certificate.
	Node bool
	// at is where decisions about it are filed, early where they were before the keys were known, if that is elsewhere.
	at, early place
}

// with is the user with what was learnt of its token as such.
func (u User) with(token User) User {
	u.early = token.at
	return u
}

// place is where decisions are filed: under a caller, of whom all has a common bound, and there by whose token it came
// with and in whose name. Neither must make a caller of its own: one identity may have any number of tokens, and try
// any number of names.
type place struct{ caller, of digest }

// hash is what a decision about a read is filed under.
func (p place) hash(read digest) digest {
	if p.of == (digest{}) {
		return read
	}
	return hashOf(string(p.of[:]), string(read[:]))
}

// digest is a hash that names something without telling it.
type digest [16]byte

// hashOf is the digest of a sequence of strings. Each request needs some, of its token: they take no memory.
func hashOf(parts ...string) (d digest) {
	var room [2 << 10]byte // what is longer takes some
	b := room[:0]
	for _, p := range parts {
		b = put(b, p)
	}
	sum := sha256.Sum256(b)
	copy(d[:], sum[:])
	return d
}

// put appends a string so that no two sequences of strings are the same bytes.
func put(b []byte, s string) []byte {
	n := len(s)
	return append(append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), s...)
}

func nodeUser(node string) User {
	name := contract.NodeUserPrefix + node
	return User{
		Name: name, Groups: []string{contract.NodesGroup, "system:authenticated"}, Node: true,
		at: place{caller: hashOf("node", name)},
	}
}

// tokenUser is who has a token of which only the cloud knows whose it is. What it says of itself is believed so far:
// whoever has many that say the same is one caller.
func tokenUser(t *token) User {
	k := hashOf("token", t.raw)
	u := User{Name: "token:" + hex.EncodeToString(k[:4]), at: place{caller: k}}
	if t.signed != nil && t.claims.Subject != "" {
		u.at = place{hashOf("subject", t.claims.Issuer, t.claims.Subject), k}
	}
	return u
}

func serviceAccount(c *claims) User {
	k := c.Kubernetes
	name := serviceAccountPrefix + k.Namespace + ":" + k.ServiceAccount.Name
	return User{
		Name: name, UID: k.ServiceAccount.UID,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + k.Namespace, "system:authenticated"},
		at:     place{caller: hashOf("service account", name, k.ServiceAccount.UID)},
	}
}

// acting is the user with the identity that a request wants to take on.
func (u User) acting(h http.Header) User {
	var names []string
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return u
	}
	slices.Sort(names)
	under := func(p place) place {
		parts := []string{"impersonation", string(p.of[:])}
		for _, name := range names {
			parts = append(append(append(parts, name), h[name]...), "")
		}
		return place{p.caller, hashOf(parts...)}
	}
	u.Name += " as " + h.Get("Impersonate-User")
	u.Node = false
	u.UID, u.Groups = "", nil
	u.at, u.early = under(u.at), under(u.early)
	return u
}
