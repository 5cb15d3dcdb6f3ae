package shelter

import corev1 "k8s.io/api/core/v1"

// prepare does to a patched object what kube-apiserver does beyond the patch of a status (PrepareForUpdate of the
// strategies in pkg/registry/core/pod and node). Feature gates that drop fields are not known here.
func prepare(patched, held object) {
	switch is := patched.(type) {
	case *corev1.Pod:
		preparePod(is, held.(*corev1.Pod))
	case *corev1.Node:
		was := held.(*corev1.Node)
		is.Spec = was.Spec
		if was.Status.Config == nil {
			is.Status.Config = nil
		}
	}
}

func preparePod(is, was *corev1.Pod) {
	is.Spec = was.Spec
	s, old := &is.Status, &was.Status
	if s.QOSClass == "" {
		s.QOSClass = old.QOSClass
	}
	if s.ResourceClaimStatuses == nil {
		s.ResourceClaimStatuses = old.ResourceClaimStatuses
	}
	if s.ExtendedResourceClaimStatus == nil {
		s.ExtendedResourceClaimStatus = old.ExtendedResourceClaimStatus
	}
	if s.NodeAllocatableResourceClaimStatuses == nil {
		s.NodeAllocatableResourceClaimStatuses = old.NodeAllocatableResourceClaimStatuses
	}
	if s.ObservedGeneration == 0 {
		s.ObservedGeneration = old.ObservedGeneration
	}
	observed := map[corev1.PodConditionType][]int64{} // there may be several of a type
	for _, c := range old.Conditions {
		observed[c.Type] = append(observed[c.Type], c.ObservedGeneration)
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		before := int64(0)
		if all := observed[c.Type]; len(all) > 0 {
			before, observed[c.Type] = all[0], all[1:]
		}
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = before
		}
	}
}
