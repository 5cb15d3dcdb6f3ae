package lifecycle

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
)

// leases are those of nodes in the cloud, as a hub reads and writes them.
type leases struct{ client kubernetes.Interface }

func object(name string, l heartbeat.Lease) *coordinationv1.Lease {
	o := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: name, ResourceVersion: l.Version},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NewMicroTime(l.Renew)),
		},
	}
	if l.Delegated {
		o.Annotations = map[string]string{contract.DelegateHeartbeat: contract.Delegated}
	}
	return o
}

func known(o *coordinationv1.Lease) heartbeat.Lease {
	return heartbeat.Lease{
		Version: o.ResourceVersion, Renew: o.Spec.RenewTime.Time,
		Delegated: o.Annotations[contract.DelegateHeartbeat] == contract.Delegated,
	}
}

func (l leases) create(ctx context.Context, name string, renew time.Time) (heartbeat.Lease, error) {
	o, err := l.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Create(ctx,
		object(name, heartbeat.Lease{Renew: renew}), metav1.CreateOptions{})
	if err != nil {
		return heartbeat.Lease{}, err
	}
	return known(o), nil
}

func (l leases) read(ctx context.Context, name string) (heartbeat.Lease, heartbeat.Outcome) {
	o, err := l.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return heartbeat.Lease{}, outcome(err)
	}
	return known(o), heartbeat.OK
}

// write writes a Lease if it is at its version.
func (l leases) write(ctx context.Context, name string, x heartbeat.Lease) (heartbeat.Lease, heartbeat.Outcome) {
	o, err := l.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Update(ctx, object(name, x),
		metav1.UpdateOptions{})
	if err != nil {
		return heartbeat.Lease{}, outcome(err)
	}
	return known(o), heartbeat.OK
}

func outcome(err error) heartbeat.Outcome {
	switch {
	case apierrors.IsConflict(err):
		return heartbeat.Conflict
	case apierrors.IsNotFound(err):
		return heartbeat.Absent
	}
	return heartbeat.Failed
}
