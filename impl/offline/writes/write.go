package writes

import (
	"cmp"

	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// component is in whose name the store is asked.
const component = "kubelet"

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

// is reports whether a target is of a resource, "pods", or of one of its subresources, "pods/status".
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

// write is one that was looked into.
type write struct {
	target
	verb        string
	own         bool   // it is this node's own
	late        bool   // by a certificate that has expired
	contentType string // of body
	body        []byte
	again       bool // what it was decided from has changed
}

// answerable reports whether a request is of a kind that is answered here.
func (r *write) answerable() bool {
	switch {
	case r.is(nodes(), "status"), r.is(pods(), "status"):
		return r.verb == "update" || r.verb == "patch"
	case r.is(nodes(), ""):
		return r.verb == "patch" || r.verb == "create"
	case r.is(events(), ""), r.is(groupEvents(), ""):
		return r.verb == "create" || r.verb == "patch"
	}
	return r.token()
}

// queued reports whether a request that is answered here goes to the cloud later.
func (r *write) queued() bool { return !r.token() && (!r.is(nodes(), "") || r.verb != "create") }

// label is the resource of a write. Those that nobody knows share a name, so that clients cannot make up series.
func (r *write) label() string {
	switch {
	case !r.answerable() && !r.is(pods(), "") && (r.Resource.Name != "leases" || r.sub != ""):
		return "other"
	case r.sub != "":
		return r.Resource.Name + "/" + r.sub
	}
	return r.Resource.Name
}

// token reports whether a request is for a token of a service account.
func (r *write) token() bool { return r.is(accounts(), "token") && r.verb == "create" }
