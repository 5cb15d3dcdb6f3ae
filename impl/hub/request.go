package hub

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay"
)

// attributes are what a request is authorized by.
type attributes struct {
	verb, group, version, resource, namespace, name string
	fieldSelector, labelSelector                    string // of lists and watches
}

// rights are the same to package identity.
func (a attributes) rights() identity.Attributes {
	return identity.Attributes{
		Verb: a.verb, Group: a.group, Version: a.version, Resource: a.resource, Namespace: a.namespace, Name: a.name,
		FieldSelector: a.fieldSelector, LabelSelector: a.labelSelector,
	}
}

// target is a request for an object or collection of a relayed resource.
type target struct {
	attributes
	index int  // of the resource in router.resources
	write bool // else get, list or watch
}

// router finds the requests that are about relayed resources. It reads paths as kube-apiserver's RequestInfoFactory does
// (endpoints/request/requestinfo.go); what it does not recognize goes to the cloud untouched.
type router struct{ resources []relay.Resource }

// route returns nil for a request that is not about a relayed resource, or about a subresource of it. A watch over
// WebSocket is the cloud's, too.
func (rt router) route(req *http.Request) *target {
	if len(req.Header["Upgrade"]) > 0 {
		return nil
	}
	path := req.URL.Path
	for i, r := range rt.resources {
		rest, ok := strings.CutPrefix(path, r.Path()+"/")
		if !ok {
			continue
		}
		t := &target{index: i, attributes: attributes{group: r.Group, version: r.Version}}
		parts := strings.Split(rest, "/")
		if parts[0] == "namespaces" && len(parts) > 2 && r.Namespaced {
			t.namespace, parts = parts[1], parts[2:]
		}
		if parts[0] != r.Resource || len(parts) > 2 || t.namespace == "" && strings.HasPrefix(rest, "namespaces/") {
			continue
		}
		t.resource = parts[0]
		if len(parts) == 2 {
			if t.name = parts[1]; t.name == "" {
				return nil
			}
		}
		if !t.method(req, r) {
			return nil
		}
		return t
	}
	return nil
}

// method fills in verb and selectors; false for methods that are no verbs of an object.
func (t *target) method(req *http.Request, r relay.Resource) bool {
	switch req.Method {
	case http.MethodGet:
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		t.write = true
		return true
	default:
		return false
	}
	if t.name != "" {
		t.verb = "get"
		return t.namespace != "" || !r.Namespaced
	}
	query := req.URL.Query()
	t.verb = "list"
	if isTrue(query, "watch") {
		t.verb = "watch"
	}
	t.fieldSelector, t.labelSelector = query.Get("fieldSelector"), query.Get("labelSelector")
	if len(t.fieldSelector) > identity.MaxSelector || len(t.labelSelector) > identity.MaxSelector {
		return false
	}
	if t.fieldSelector != "" { // one that names an object is authorized by that name
		if sel, err := fields.ParseSelector(t.fieldSelector); err == nil {
			if name, ok := sel.RequiresExactMatch("metadata.name"); ok && name != "." && name != ".." && !strings.ContainsAny(name, "/%") {
				t.name = name
			}
		}
	}
	return true
}

// isTrue reads a boolean query parameter as kube-apiserver does: present and neither false nor 0.
func isTrue(q url.Values, key string) bool {
	values, ok := q[key]
	if !ok || len(values) == 0 {
		return false
	}
	return values[0] != "0" && !strings.EqualFold(values[0], "false")
}
