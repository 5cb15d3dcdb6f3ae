package lead

import (
	"fmt"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/member"
)

// sight is what a fence sees of a Lease. A deleted one has the version of its deletion.
func sight(l *coordinationv1.Lease, deleted bool) (s member.Sighting, err error) {
	if s.Version, err = strconv.ParseUint(l.ResourceVersion, 10, 64); err != nil {
		return s, fmt.Errorf("resourceVersion %q of the election lease: %w", l.ResourceVersion, err)
	}
	if !deleted {
		s.Holder, s.Address = HolderOf(l), l.Annotations[contract.PoolAddress]
	}
	return s, nil
}

// sightList is what a fence sees of a list that has the Lease or nothing. The list's version is later than that of the
// Lease in it, which is what terms compare with.
func sightList(l *coordinationv1.LeaseList) (s member.Sighting, err error) {
	if len(l.Items) > 0 {
		return sight(&l.Items[0], false)
	}
	return sight(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: l.ResourceVersion}}, true)
}

// HolderOf is who holds a Lease, "" if nobody does.
func HolderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}
