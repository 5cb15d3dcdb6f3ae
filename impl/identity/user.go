package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
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
	// key is what decisions are filed under: the identity, and whose it takes on.
	key digest
	// early is what decisions were filed under before the keys were known, if it is another.
	early digest
}

// with is the user with what was learnt of its token as such.
func (u User) with(token User) User {
	u.early = token.key
	return u
}

// Key tells users apart, also those of the same name; it is no secret.
func (u User) Key() string { return hex.EncodeToString(u.key[:]) }

// digest is a hash that names something without telling it.
type digest [16]byte

// hashOf is the digest of a sequence of strings.
func hashOf(parts ...string) (d digest) {
	h := sha256.New()
	for _, p := range parts {
		put(h, p)
	}
	copy(d[:], h.Sum(nil))
	return d
}

// put writes a string so that no two sequences of strings are the same bytes.
func put(h hash.Hash, s string) {
	n := len(s)
	_, _ = h.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	_, _ = io.WriteString(h, s)
}

func nodeUser(node string) User {
	name := contract.NodeUserPrefix + node
	return User{Name: name, Groups: []string{contract.NodesGroup, "system:authenticated"}, Node: true, key: hashOf("node", name)}
}

// tokenUser is who has a token of which only the cloud knows whose it is.
func tokenUser(token string) User {
	k := hashOf("token", token)
	return User{Name: "token:" + hex.EncodeToString(k[:4]), key: k}
}

const serviceAccountPrefix = "system:serviceaccount:"

func serviceAccount(c *claims) User {
	k := c.Kubernetes
	name := serviceAccountPrefix + k.Namespace + ":" + k.ServiceAccount.Name
	return User{
		Name: name, UID: k.ServiceAccount.UID,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + k.Namespace, "system:authenticated"},
		key:    hashOf("service account", name, k.ServiceAccount.UID),
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
	under := func(k digest) digest {
		parts := []string{"impersonation", string(k[:])}
		for _, name := range names {
			parts = append(append(append(parts, name), h[name]...), "")
		}
		return hashOf(parts...)
	}
	u.Name += " as " + h.Get("Impersonate-User")
	u.Node = false
	u.UID, u.Groups = "", nil
	u.key, u.early = under(u.key), under(u.early)
	return u
}
