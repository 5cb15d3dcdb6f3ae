package coordinator

import (
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

// LeasesPath is where the Leases of the pool are.
const LeasesPath = "/apis/coordination.k8s.io/v1/namespaces/" + contract.LeaseNamespace + "/leases"

// FromLease is what the role machine sees of a Lease.
func FromLease(l *coordinationv1.Lease) role.Record {
	r := role.Record{Exists: true, UID: string(l.UID), Version: l.ResourceVersion}
	if s := l.Spec; s.HolderIdentity != nil {
		r.Holder = *s.HolderIdentity
	}
	if s := l.Spec; s.LeaseDurationSeconds != nil {
		r.Duration = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	if s := l.Spec; s.AcquireTime != nil {
		r.AcquireTime = s.AcquireTime.Time
	}
	if s := l.Spec; s.RenewTime != nil {
		r.RenewTime = s.RenewTime.Time
	}
	if s := l.Spec; s.LeaseTransitions != nil {
		r.Transitions = *s.LeaseTransitions
	}
	return r
}

// ToLease is what a record is written as. It sets UID and version as preconditions: after the coordinator lost its
// disk, versions may come again.
func ToLease(name string, r role.Record) *coordinationv1.Lease {
	seconds := int32(math.Ceil(r.Duration.Seconds()))
	renew := metav1.NewMicroTime(r.RenewTime)
	l := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: contract.LeaseNamespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &r.Holder, LeaseDurationSeconds: &seconds, RenewTime: &renew, LeaseTransitions: &r.Transitions,
		},
	}
	if r.Exists {
		l.UID, l.ResourceVersion = types.UID(r.UID), r.Version
	}
	if !r.AcquireTime.IsZero() {
		acquire := metav1.NewMicroTime(r.AcquireTime)
		l.Spec.AcquireTime = &acquire
	}
	return l
}
