package moved

import (
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Slice is an EndpointSlice as it is now; changed is false if it is what came. What came is not written to, and the
// two share what is the same. publishes: its Service publishes addresses that are not ready.
func (s *Set) Slice(in *discoveryv1.EndpointSlice, publishes bool) (out *discoveryv1.EndpointSlice, changed bool) {
	publishes = publishes || slices.ContainsFunc(in.Endpoints, published)
	endpoints := make([]discoveryv1.Endpoint, 0, len(in.Endpoints))
	for i := range in.Endpoints {
		e, keep, other := s.endpoint(in, i, publishes)
		if changed = changed || other; keep {
			endpoints = append(endpoints, e)
		}
	}
	if !changed {
		return in, false
	}
	with := *in
	with.Endpoints = endpoints
	return &with, true
}

// endpoint is one endpoint as it is now.
func (s *Set) endpoint(in *discoveryv1.EndpointSlice, i int, publishes bool) (e discoveryv1.Endpoint, keep,
	changed bool) {
	e = in.Endpoints[i]
	p, ok := placeOf(in, i)
	if !ok {
		return e, true, false
	}
	now, keep := s.correct(p)
	if now == p || !keep {
		return e, keep, !keep
	}
	e.Addresses = []string{now.address.String()}
	ready := publishes || now.serving && !is(e.Conditions.Terminating, false)
	e.Conditions.Ready, e.Conditions.Serving = &ready, &now.serving
	return e, true, true
}

// placeOf is the place that an endpoint of a slice is. ok is false if it is no pod's on a node.
func placeOf(s *discoveryv1.EndpointSlice, i int) (p place, ok bool) {
	e := &s.Endpoints[i]
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" || e.NodeName == nil || len(e.Addresses) == 0 {
		return p, false
	}
	a, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || a.Is4() != (s.AddressType == discoveryv1.AddressTypeIPv4) ||
		s.AddressType == discoveryv1.AddressTypeFQDN {
		return p, false
	}
	return place{*e.NodeName, e.TargetRef.UID, a, serves(e)}, true
}

// serves reports whether an endpoint is serving, as the API says what is left out.
func serves(e *discoveryv1.Endpoint) bool {
	return is(e.Conditions.Serving, is(e.Conditions.Ready, true))
}

// published reports whether an endpoint is ready though its pod is not: then its Service publishes such.
func published(e discoveryv1.Endpoint) bool {
	return is(e.Conditions.Ready, true) && (!serves(&e) || is(e.Conditions.Terminating, false))
}

func is(b *bool, unset bool) bool {
	if b == nil {
		return unset
	}
	return *b
}
