package lead

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// TestOwnLease: where a hub may say that its relays are, and who holds the Lease of its node.
func TestOwnLease(t *testing.T) {
	for _, c := range []struct {
		address, holder string
		near            bool
		refused         string // "": it is taken
	}{
		{"10.0.0.7:10269", "edge-1", false, ""},
		{contract.PoolAddressReverse, "edge-1_2", false, ""},
		{"127.0.0.1:10269", "edge-1", true, ""},
		{"127.0.0.1:10269", "edge-1", false, "of each machine"},
		{"[::1]:10269", "edge-1", false, "of each machine"},
		{"[::ffff:127.0.0.1]:10269", "edge-1", false, "of each machine"},
		{"169.254.169.254:80", "edge-1", true, "want the IP address of a node"},
		{"10.0.0.7:10269", "edge-2", false, "is not of the node"},
		{"10.0.0.7:10269", "edge-1_" + strings.Repeat("x", 320), false, "320 at most"},
	} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: contract.NodeLeaseNamespace, Name: "edge-1",
			Annotations: map[string]string{contract.PoolAddress: c.address},
		}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.holder}}
		err := (&Election{}).Check(t.Context(), LeaseCaller{Node: "edge-1", Near: c.near}, l, nil)
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s held by %.20s, near %t: %v; want %q", c.address, c.holder, c.near, err, c.refused)
		}
	}
}
