package overlay

import (
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// lately is how long the cloud may need from the status of a pod to its slices. Slices that say otherwise for longer do
// so on purpose, as those of a second network.
const lately = 2 * time.Minute

// lagging gives the pods of this node of which the cloud has a status that its slices, or what this hub last said,
// contradict: the link broke between the two, or the slices are under way. Nobody else in the pool could tell it. Those
// of which a newer status waits are left out.
func (o *Overlay) lagging(away bool, own []moved.Correction) []moved.Correction {
	now, since := o.Clock.Now(), time.Duration(0)
	if r := o.Relay(slicesOf); r != nil {
		s := r.Status()
		since, _ = s.Age(now)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	said := o.speaker.last
	said.Node = o.Node
	if away { // what stays ready does so anyway
		said.Corrections = slices.DeleteFunc(slices.Clone(said.Corrections), func(c moved.Correction) bool { return c.Stays })
	}
	all, also := o.relayed()
	return slices.DeleteFunc(moved.Lagging(said, o.latest, func(pod *corev1.Pod) bool {
		at := turned(pod)
		return o.set.Moved(o.Node, pod.UID) || now.Sub(at) <= since+lately
	}, all, also), func(c moved.Correction) bool { return corrects(own, c.UID) })
}

func corrects(all []moved.Correction, uid types.UID) bool {
	return slices.ContainsFunc(all, func(c moved.Correction) bool { return c.UID == uid })
}

// latest walks over the pods of this node as the cloud has them. Until it has shown a pod again, that is with the
// status that it was sent last.
func (o *Overlay) latest(yield func(*corev1.Pod) bool) {
	for pod := range o.Pods {
		if sent := o.outage.waited[pod.UID]; sent != nil {
			if sent.ResourceVersion == pod.ResourceVersion {
				pod = sent
			} else {
				delete(o.outage.waited, pod.UID)
			}
		}
		if !yield(pod) {
			return
		}
	}
}

// says are the versions at which the cloud says of the pods of this node what is true, if its relays agree with their
// statuses. Of a pod that became ready since the outage began, slices that are older than its status do not know that.
// A relay that stands still when the link is back may have a mark of the cloud to come. Pods and slices have their
// versions of one sequence, that of etcd. A cluster that keeps slices in an etcd of their own may wait for as long as
// returns.
func (o *Overlay) says() moved.Reached {
	at := o.reached()
	for pod := range o.Pods {
		v, _ := wire.ParseVersion(pod.ResourceVersion) // 0 if it is none
		if at[2] = max(at[2], v); turned(pod).After(o.outage.began) {
			at[0], at[1] = max(at[0], v), max(at[1], v)
		}
	}
	return at
}

// turned is when a pod became ready, or ceased to be.
func turned(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// relayed is what the relays hold; nil: there is none.
func (o *Overlay) relayed() (all iter.Seq[*discoveryv1.EndpointSlice], also iter.Seq[*corev1.Endpoints]) {
	if r := o.Relay(slicesOf); r != nil {
		all = decoded[discoveryv1.EndpointSlice](r)
	}
	if r := o.Relay(endpoints); r != nil {
		also = decoded[corev1.Endpoints](r)
	}
	return all, also
}
