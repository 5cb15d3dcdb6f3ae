package shelter

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// DefaultNodeStatusPeriod is how old the heartbeat times of a Node's conditions may be at the cloud. A kubelet may have
// the same period by nodeStatusReportFrequency of its configuration: since KEP-589 these times tell nobody whether a
// node is alive, its Lease does.
const DefaultNodeStatusPeriod = 30 * time.Minute

// onlyBeats reports whether a patched Node differs from the one at the cloud in nothing but the heartbeat times of its
// conditions, and whether all of these are less than a period later. The kubelet's clock has set both.
func onlyBeats(patched, held object, period time.Duration) bool {
	is, ok := patched.(*corev1.Node)
	if !ok {
		return false
	}
	was := held.(*corev1.Node)
	if len(is.Status.Conditions) != len(was.Status.Conditions) {
		return false
	}
	status := is.Status // its other fields are only read
	status.Conditions = slices.Clone(status.Conditions)
	for i := range status.Conditions {
		at, before := &status.Conditions[i].LastHeartbeatTime, was.Status.Conditions[i].LastHeartbeatTime
		if later := at.Sub(before.Time); later < 0 || later >= period {
			return false
		}
		*at = before
	}
	return equality.Semantic.DeepEqual(&status, &was.Status)
}
