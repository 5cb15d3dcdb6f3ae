package hub

import (
	"net/http"
	"net/url"
	"slices"
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

// key is the object's as relays have it, "" if it has no name.
func (t *target) key() string {
	if t.namespace == "" || t.name == "" {
		return t.name
	}
	return t.namespace + "/" + t.name
}

// covers tells whether a read is about an object.
func (t *target) covers(key string) bool {
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	return (t.namespace == "" || t.namespace == namespace) && (t.name == "" || t.name == name)
}

// ofNode tells whether a read is of a node's own Node or pods. What the node itself reads of these is node-scope where it is kept for the time without the
// cloud, also if a relay has the resource: its statuses, its registration and the tokens of its pods are judged then by what was kept, and what it wrote
// meanwhile is laid over that. It is what the node reads without Weir, too: its own share of the resource, from the cloud itself.
func (t *target) ofNode(node string) bool {
	switch {
	case t.group != "":
		return false
	case t.resource == "nodes":
		return t.name == node
	case t.resource != "pods":
		return false
	case t.verb == "get":
		return true
	}
	sel, err := fields.ParseSelector(t.fieldSelector)
	if err != nil {
		return false
	}
	on, ok := sel.RequiresExactMatch("spec.nodeName")
	return ok && on == node
}

// router finds the requests that are about relayed resources. It reads paths as kube-apiserver's RequestInfoFactory does
// (endpoints/request/requestinfo.go); what it does not recognize goes to the cloud untouched.
type router struct{ resources []relay.Resource }

// connects are the subresources that open a way to something else, whatever the method: nothing of the object is written.
var connects = []string{"attach", "exec", "log", "portforward", "proxy"}

// route returns nil for a request that is not about a relayed resource. Reads are those that a relay can answer: none of a subresource,
// of another version of the API, or over WebSocket. Writes are all that may change an object that a relay holds.
func (rt router) route(req *http.Request) *target {
	if len(req.Header["Upgrade"]) > 0 {
		return nil
	}
	for i, r := range rt.resources {
		rest, ok := below(r, req)
		if !ok {
			continue
		}
		t := &target{index: i, attributes: attributes{group: r.Group, version: r.Version, resource: r.Resource}}
		parts := strings.Split(rest, "/")
		if parts[0] == "namespaces" && len(parts) > 2 && r.Namespaced {
			if t.namespace = parts[1]; t.namespace == "" {
				return nil
			}
			parts = parts[2:]
		}
		if parts[0] != r.Resource {
			continue
		}
		if len(parts) > 1 {
			if t.name = parts[1]; t.name == "" {
				return nil
			}
		}
		if !t.method(req, r, parts[min(2, len(parts)):]) {
			return nil
		}
		return t
	}
	return nil
}

// below is the path of a request below the root of a resource's API; a write may use another version of it.
func below(r relay.Resource, req *http.Request) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(req.URL.Path, r.Path()+"/"); ok || r.Group == "" || req.Method == http.MethodGet {
		return rest, ok
	}
	if rest, ok = strings.CutPrefix(req.URL.Path, "/apis/"+r.Group+"/"); ok {
		_, rest, ok = strings.Cut(rest, "/")
	}
	return rest, ok
}

// method fills in verb and selectors; false if the request neither writes an object nor can be answered by a relay. sub is what follows the name.
func (t *target) method(req *http.Request, r relay.Resource, sub []string) bool {
	switch req.Method {
	case http.MethodGet:
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		t.write = true
		return len(sub) == 0 || len(sub) == 1 && !slices.Contains(connects, sub[0])
	default:
		return false
	}
	if t.name != "" { // a Namespace is authorized in itself, so the cloud answers
		t.verb = "get"
		return len(sub) == 0 && (t.namespace != "" || !r.Namespaced && r.Resource != "namespaces")
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
