package moved

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// Endpoints is as Slice, for Endpoints. They say of a pod only whether it is ready.
func (s *Set) Endpoints(in *corev1.Endpoints, publishes bool) (out *corev1.Endpoints, changed bool) {
	var subsets []corev1.EndpointSubset
	for _, subset := range in.Subsets {
		var ready, not []corev1.EndpointAddress
		each := func(all []corev1.EndpointAddress, serving bool) {
			for _, a := range all {
				p, ok := placeAt(&a, serving)
				now, keep := p, true
				if ok {
					now, keep = s.correct(p)
					changed = changed || now != p || !keep
				}
				if now != p {
					a.IP = now.address.String()
				}
				switch {
				case !keep:
				case now.serving || publishes && serving: // what is not ready and published is among those that are
					ready = append(ready, a)
				default:
					not = append(not, a)
				}
			}
		}
		each(subset.Addresses, true)
		each(subset.NotReadyAddresses, false)
		subset.Addresses, subset.NotReadyAddresses = ready, not
		if len(ready)+len(not) > 0 {
			subsets = append(subsets, subset)
		}
	}
	if !changed {
		return in, false
	}
	with := *in
	with.Subsets = subsets
	return &with, true
}

// placeAt is the place that an address is. ok is false if it is no pod's on a node.
func placeAt(a *corev1.EndpointAddress, serving bool) (p place, ok bool) {
	ip, err := netip.ParseAddr(a.IP)
	if err != nil || a.TargetRef == nil || a.TargetRef.Kind != "Pod" || a.NodeName == nil {
		return place{serving: serving}, false
	}
	return place{*a.NodeName, a.TargetRef.UID, ip, serving}, true
}

// eachAddress walks over the places of Endpoints.
func eachAddress(e *corev1.Endpoints, f func(place)) {
	for i := range e.Subsets {
		for j := range e.Subsets[i].Addresses {
			if p, ok := placeAt(&e.Subsets[i].Addresses[j], true); ok {
				f(p)
			}
		}
		for j := range e.Subsets[i].NotReadyAddresses {
			if p, ok := placeAt(&e.Subsets[i].NotReadyAddresses[j], false); ok {
				f(p)
			}
		}
	}
}
