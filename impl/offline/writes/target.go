package writes

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/weir-edge/weir/impl/store"
)

// target is what a request is about, as kube-apiserver's RequestInfoFactory reads it from the path.
type target struct {
	store.Resource
	namespace, name, sub string
}

// targetOf reads a path; the target is empty if it names no resource of the API.
func targetOf(path string) (t target) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.Resource.Name = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.sub = strings.Join(parts[2:], "/")
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

// verbOf is what a method does to a target, "" if it does not write.
func verbOf(method string, t target) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if t.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}

// Resources that are written offline.
func nodes() store.Resource    { return store.Resource{Version: "v1", Name: "nodes"} }
func pods() store.Resource     { return store.Resource{Version: "v1", Name: "pods"} }
func events() store.Resource   { return store.Resource{Version: "v1", Name: "events"} }
func accounts() store.Resource { return store.Resource{Version: "v1", Name: "serviceaccounts"} }
func groupEvents() store.Resource {
	return store.Resource{Group: "events.k8s.io", Version: "v1", Name: "events"}
}
