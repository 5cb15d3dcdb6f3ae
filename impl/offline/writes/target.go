package writes

import (
	"cmp"

	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// target is what a write is about.
type target struct {
	store.Resource
	namespace, name, sub string
}

func targetOf(r *request.Request) target {
	t := target{r.Resource, r.In(), r.Name, r.Subresource}
	if r.Rest != "" {
		t.sub += "/" + r.Rest
	}
	return t
}

// is tells whether a target is of a resource, "pods", or of one of its subresources, "pods/status".
func (t target) is(r store.Resource, sub string) bool { return t.Resource == r && t.sub == sub }

func (t target) key() store.Key { return store.Key{Namespace: t.namespace, Name: t.name} }

// String is how a person would name it: `pods/status "default/web"`.
func (t target) String() string {
	s := cmp.Or(t.Resource.Name, "what is no resource")
	if t.Group != "" {
		s += "." + t.Group
	}
	if t.sub != "" {
		s += "/" + t.sub
	}
	if t.name != "" {
		s += ` "` + t.key().String() + `"`
	} else if t.namespace != "" {
		s += ` in "` + t.namespace + `"`
	}
	return s
}

// Resources that are written offline.
func nodes() store.Resource    { return store.Resource{Version: "v1", Name: "nodes"} }
func pods() store.Resource     { return store.Resource{Version: "v1", Name: "pods"} }
func events() store.Resource   { return store.Resource{Version: "v1", Name: "events"} }
func accounts() store.Resource { return store.Resource{Version: "v1", Name: "serviceaccounts"} }
func groupEvents() store.Resource {
	return store.Resource{Group: "events.k8s.io", Version: "v1", Name: "events"}
}
