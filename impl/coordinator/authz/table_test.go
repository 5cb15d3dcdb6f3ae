package authz

import (
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/weir-edge/weir/impl/pki"
)

// TestTable: each certificate of Weir has the role here that it is made for, in its own pool only.
func TestTable(t *testing.T) {
	// all others are strangers.
	roles := map[pki.Kind]role{pki.Hub: hub, pki.Replica: replica, pki.Operator: operator, pki.Viewer: viewer}
	for _, i := range pki.Identities() {
		for _, pool := range []string{"p", "q"} {
			s, err := i.Template(pki.Subject{Pool: "p", Node: "a", Name: "2", Hosts: []string{"10.0.0.1"}}, time.Time{},
				i.Life.Usual)
			if err != nil {
				t.Fatal(err)
			}
			want := roles[i.Kind]
			if pool != "p" || !s.Client { // who shows a certificate of a server is not let in at all
				want = stranger
			}
			u := &user.DefaultInfo{Name: s.CommonName, Groups: s.Organizations}
			if got, why := New(pool, relays()).who(u); got != want {
				t.Errorf("%s at the coordinator of pool %s: role %d, want %d (%s)", i.Kind, pool, got, want, why)
			}
		}
	}
}
