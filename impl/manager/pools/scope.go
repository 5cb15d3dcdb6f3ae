package pools

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/relay"
)

// scope is what a pool shares.
type scope struct {
	shared []string // group/version/resource, sorted
	// the same, with =Kind behind a custom resource that the cloud serves, and a ! behind that if it has no namespaces.
	kinds   []string
	refused []string // what is left out, and why
	unknown []string // what is shared, and the cloud does not serve
	// what is shared, and the cloud does not report whether it serves it: the server of its group is down, for one.
	unsure []string
}

// scopeOf reads poolScopeMetadata. serves is the kind of a resource in the cloud, with a ! behind it if it has no
// namespaces; "": the cloud does not serve it.
//
// Weir's CRD refuses at once what is refused here; OpenYurt's does not.
func scopeOf(all []nodepool.Resource, serves func(nodepool.Resource) (kind string, err error)) (s scope) {
	versions := map[nodepool.Resource]string{} // by group and resource: the first counts
	for _, r := range all {
		name := r.Group + "/" + r.Version + "/" + r.Resource
		first, again := versions[nodepool.Resource{Group: r.Group, Resource: r.Resource}]
		switch {
		case r.Group == "" && r.Resource == "secrets":
			s.refused = append(s.refused, name+": Secrets are never shared")
			continue
		case r.Group == coordinationv1.GroupName:
			s.refused = append(s.refused, name+": Leases are never shared, the pool has its own")
			continue
		case r.Group != "" && len(validation.IsDNS1123Subdomain(r.Group)) > 0, len(validation.IsDNS1035Label(r.Version)) > 0,
			len(validation.IsDNS1035Label(r.Resource)) > 0:
			s.refused = append(s.refused, fmt.Sprintf("%q: want a group, a version and a resource in the plural", name))
			continue
		case again && first != r.Version:
			s.refused = append(s.refused, fmt.Sprintf("%s: it is shared as %s, and in one version only", name, first))
			continue
		case again:
			continue
		}
		versions[nodepool.Resource{Group: r.Group, Resource: r.Resource}] = r.Version
		s.shared = append(s.shared, name)
		kind, err := serves(r)
		if err != nil {
			s.unsure = append(s.unsure, fmt.Sprintf("%s (%v)", name, err))
		} else if kind == "" {
			s.unknown = append(s.unknown, name)
		} else if _, err := relay.ParseResource(r.Resource + "." + r.Version + "." + r.Group); err != nil {
			name += "=" + kind
		}
		s.kinds = append(s.kinds, name)
	}
	slices.Sort(s.shared)
	return s
}

// text is the scope as an annotation.
func (s scope) text() string { return strings.Join(s.shared, ",") }

// withKinds is text as it is signed: who has no way to the cloud cannot ask it what a custom resource is.
func (s scope) withKinds() string { return strings.Join(s.kinds, ",") }

// lacking reports whether the cloud does not serve all of it, or may not.
func (s scope) lacking() bool { return len(s.unknown)+len(s.unsure) > 0 }

// condition is ScopeAccepted.
func (s scope) condition() metav1.Condition {
	c := metav1.Condition{Type: nodepool.ScopeAccepted, Status: metav1.ConditionFalse}
	switch {
	case len(s.refused) > 0:
		c.Reason, c.Message = "Refused", strings.Join(s.refused, "; ")
	case len(s.unknown) > 0:
		c.Reason, c.Message = "NotServed", "the cloud does not serve "+strings.Join(s.unknown, ", ")+
			": hubs answer as it does, until it does"
	case len(s.unsure) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NotKnown", "the cloud does not report whether it serves "+
			strings.Join(s.unsure, ", ")+": it is asked again"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Accepted", fmt.Sprintf("%d resources", len(s.shared))
	}
	return c
}
