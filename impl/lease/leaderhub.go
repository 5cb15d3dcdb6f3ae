package lease

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
)

// forgetAfter is how long a leader hub keeps a Lease that nobody writes: a hub writes each heartbeat, and one that is
// late once is not forgotten.
const forgetAfter = time.Minute

// maxOwners is how many owner references of a Lease a leader hub keeps: a kubelet writes one.
const maxOwners = 4

// NewNodes makes the store of a leader hub, which is closed and holds nothing. Its users are nodes.
func NewNodes(c clock.WithTicker) *Store {
	// Versions of before a restart do not come again: the clock went on.
	s := New(rand.Text(), uint64(max(c.Now().UnixMicro(), 1)))
	s.clock, s.closed = c, true
	s.Policy = Policy{
		May: func(node, name string) error {
			if node == name {
				return nil
			}
			return apierrors.NewForbidden(resource, name, fmt.Errorf("the hub of node %s may read and write the Lease of its "+
				"own node", node))
		},
		Write: func(_ context.Context, node string, lease, _ *coordinationv1.Lease) error {
			if lease.Name == node {
				return nil
			}
			return apierrors.NewBadRequest(fmt.Sprintf("its name is %.80q, want %s, the node of this hub", lease.Name, node))
		},
		Keep: ofNode, Max: heartbeat.MaxNodes, Forget: forgetAfter,
	}
	return s
}

// ofNode is what matters of the Lease of a node.
func ofNode(l *coordinationv1.Lease) *coordinationv1.Lease {
	out := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: contract.NodeLeaseNamespace, Name: l.Name,
			OwnerReferences: slices.Clone(l.OwnerReferences[:min(len(l.OwnerReferences), maxOwners)]),
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: l.Spec.HolderIdentity, LeaseDurationSeconds: l.Spec.LeaseDurationSeconds,
			RenewTime: l.Spec.RenewTime,
		},
	}
	SetDelegated(out, IsDelegated(l))
	if address, ok := l.Annotations[contract.PoolAddress]; ok {
		if _, _, err := contract.ParsePoolAddress(address); err == nil {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, contract.PoolAddress, address)
		}
	}
	return out
}
