package moved

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Lagging are the pods of a node of which others would believe what is no longer true, though the cloud has their
// statuses: the last statement of the node says otherwise, or slices do because what the cloud made of the status has
// not come. What counts is what their kubelets say (Stands). It is given all that the relays hold, uncorrected; nil:
// there is no relay of these. fresh: the cloud may still be about to write slices of the pod.
func Lagging(said Statement, pods iter.Seq[*corev1.Pod], fresh func(*corev1.Pod) bool,
	all iter.Seq[*discoveryv1.EndpointSlice], also iter.Seq[*corev1.Endpoints]) (lag []Correction) {
	of := map[types.UID]*Correction{}
	for pod := range pods {
		c, before := wordOf(pod), Correction{}
		i := slices.IndexFunc(said.Corrections, func(b Correction) bool { return b.UID == c.UID })
		if i >= 0 {
			before = said.Corrections[i]
		}
		if before.Stays && !fresh(pod) || (i < 0 || before.Stays) && Marked(pod) {
			var ok bool
			if c, ok = Stands(pod); !ok {
				continue // the kubelet says what the cloud does
			}
		}
		switch {
		case pod.Spec.NodeName != said.Node || c.check() != nil:
		case i >= 0 && !before.Stays && !before.equal(c):
			lag = append(lag, c)
		case before.Stays || fresh(pod):
			of[pod.UID] = &c
		}
	}
	if len(of) == 0 {
		return lag
	}
	for who := range contradicted(all, also, func(node string, uid types.UID) *Correction {
		if node == said.Node {
			return of[uid]
		}
		return nil
	}) {
		lag = append(lag, *of[who.uid])
	}
	return lag
}

// contradicted are the pods of which a slice says otherwise than their corrections; nil: a pod has none.
func contradicted(all iter.Seq[*discoveryv1.EndpointSlice], also iter.Seq[*corev1.Endpoints],
	of func(node string, uid types.UID) *Correction) map[owner]bool {
	open := map[owner]bool{}
	look := func(p place) {
		if c := of(p.node, p.uid); c != nil && (!c.Stays && c.of(p.address.Is4()) != p.address || c.Ready != p.serving) {
			open[owner{p.node, p.uid}] = true
		}
	}
	if all != nil {
		for slice := range all {
			for i := range slice.Endpoints {
				if p, ok := placeOf(slice, i); ok {
					look(p)
				}
			}
		}
	}
	if also != nil {
		for e := range also {
			eachAddress(e, look)
		}
	}
	return open
}
