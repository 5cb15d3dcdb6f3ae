package heartbeat

import "time"

// Lease is what decisions need of a node's Lease, in the coordinator or in the cloud.
type Lease struct {
	Version   string    // resourceVersion
	Renew     time.Time // of some other machine's clock: compared for change, and kept growing; never held against a clock
	Delegated bool      // annotated: the node does not reach the cloud
	Managed   bool      // it has managedFields, of the renewTime alone: kube-apiserver keeps the time of a write there
}

// tick is the resolution of a renewTime (metav1.MicroTime).
const tick = time.Microsecond

// Later is the renewTime to write where another one stands: the node's own, or the least one that is greater than what
// stands, since the cloud counts only what grows. So a clock that was set back costs no heartbeat.
func Later(own, stands time.Time) time.Time {
	own = own.Truncate(tick)
	if least := stands.Truncate(tick).Add(tick); own.Before(least) {
		return least
	}
	return own
}

// drift is the part by which two clocks may run at different speeds: far more than any do. After Prove the renewTime is
// 14 s behind the node's clock because of it.
const drift = 256

// Onward is the renewTime of a node that lives, written by one that has seen for some time that another one stands. It
// grows a little slower than the node's own clock: what the node itself writes next is greater (Cover.Least).
func Onward(stands time.Time, since time.Duration) time.Time {
	since = max(since, 0)
	return Later(stands.Add(since-2*since/drift), stands)
}
