package workload

import "slices"

// Kind says what a change was.
type Kind string

// The kinds of changes. The first two are endpoint changes: of one endpoint, written to its slice and to the
// Endpoints of its service. The others happen to small extra slices, between endpoint changes.
const (
	Flipped  Kind = "flipped"  // an endpoint became ready, or is ready no more
	Replaced Kind = "replaced" // a pod went and another came
	Created  Kind = "created"  // a new slice
	Hidden   Kind = "hidden"   // a slice got a label by which kube-proxy's selector loses it
	Shown    Kind = "shown"    // it lost the label again
	Deleted  Kind = "deleted"  // a slice is gone
)

// Change is something that happened to the workload.
type Change struct {
	Number             int // of the endpoint change, from 1 on; an extra change has that of the one before it
	Kind               Kind
	Namespace, Service string
	Writes             []Write
}

const (
	flipShare   = 0.6 // of endpoint changes; the others are replacements
	repairShare = 0.5 // of flips: an endpoint that is not ready becomes so, if there is one
)

// changeEndpoint changes one endpoint of s and returns the slice it is in.
func (w *Workload) changeEndpoint(s *service) (Kind, *slice) {
	r := w.changes
	sl := s.slices[r.IntN(len(s.slices))]
	i := r.IntN(len(sl.endpoints))
	if r.Float64() >= flipShare {
		// A reconciler removes the old endpoint and appends the new one.
		sl.endpoints = append(slices.Delete(sl.endpoints, i, i+1), w.newEndpoint(r, s, true))
		return Replaced, sl
	}
	if r.Float64() < repairShare {
		if j := slices.IndexFunc(sl.endpoints, func(e endpoint) bool { return !e.ready }); j >= 0 {
			i = j
		}
	}
	sl.endpoints[i].ready = !sl.endpoints[i].ready
	return Flipped, sl
}
