// Package request parses an HTTP request to the Kubernetes API once, at the door of a hub. Authorization, filters,
// relays, store and queue all use the same parsed value.
//
// It reads paths and queries as kube-apiserver does (k8s.io/apiserver/pkg/endpoints/request, RequestInfoFactory). A
// Request is immutable, and may be read by many. Selectors are the costly part, and anybody may send them: they are
// decoded when they are first asked for.
package request

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resource is one resource of one version of an API group, as in a path.
type Resource struct {
	Group   string // "" is the core group
	Version string
	Name    string // plural: "pods"
}

// String is "pods.v1." or "endpointslices.v1.discovery.k8s.io".
func (r Resource) String() string { return r.Name + "." + r.Version + "." + r.Group }

// Request is what is asked.
type Request struct {
	Method string
	// Verb is that of kube-apiserver: get, list, watch, create, update, patch, delete or deletecollection; of what is no
	// resource the method in small letters. It is empty for a method that means nothing for resources.
	Verb string
	// IsResource is false of /version and the like: then Path is all there is.
	IsResource  bool
	Resource    Resource
	Subresource string // of an object: "status"
	// what follows the subresource, which kube-apiserver does not look at: the path behind pods/web/proxy.
	Rest      string
	Namespace string // "": all of them, or a resource that has none; that of a Namespace is its own name
	Name      string // of the object that the path names; "" for a collection
	// Of lists, watches and deletions of collections, as they were sent.
	LabelSelector, FieldSelector string

	Path  string
	Query url.Values
	// Odd tells that only the cloud should judge the request: deprecated paths (/watch/, /proxy/), those that are not
	// clean, and selectors beyond MaxSelector. What stands above is then how kube-apiserver reads it.
	Odd bool
	// Upgrade tells that the client asks for another protocol.
	Upgrade bool

	options func() (metainternalversion.ListOptions, error)
}

// MaxSelector bounds selectors. The cloud judges a request with a longer one.
const MaxSelector = 8 << 10

// Parse reads a request.
func Parse(req *http.Request) *Request {
	r := &Request{
		Method: req.Method, Verb: strings.ToLower(req.Method), Path: req.URL.Path, Query: req.URL.Query(),
		Upgrade: len(req.Header["Upgrade"]) > 0,
	}
	r.options = sync.OnceValues(r.decode)
	path := strings.Trim(r.Path, "/")
	parts := strings.Split(path, "/")
	unclean := strings.TrimSuffix(r.Path, "/") != "/"+path ||
		slices.ContainsFunc(parts, func(part string) bool { return part == "" || part == "." || part == ".." })
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.Resource.Group, parts = parts[1], parts[2:]
	default:
		return r
	}
	r.IsResource, r.Odd, r.Resource.Version, parts = true, unclean, parts[0], parts[1:]
	byPath := parts[0] == "watch" || parts[0] == "proxy"
	if byPath {
		r.Odd = true
		if len(parts) < 2 {
			return r
		}
		r.Verb, parts = parts[0], parts[1:]
	} else {
		r.Verb = verbs[req.Method]
	}
	r.object(parts)
	if r.Name == "" {
		r.collection()
	}
	if !byPath && (r.Verb == "list" || r.Verb == "watch" || r.Verb == "deletecollection") {
		r.LabelSelector, r.FieldSelector = r.Query.Get("labelSelector"), r.Query.Get("fieldSelector")
		r.Odd = r.Odd || len(r.LabelSelector) > MaxSelector || len(r.FieldSelector) > MaxSelector
	}
	return r
}

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// object reads the parts of a path behind the version.
func (r *Request) object(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		r.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	r.Resource.Name = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 && r.Verb != "proxy" {
		r.Subresource, r.Rest = parts[2], strings.Join(parts[3:], "/")
	}
}

// collection reads what a request that names no object does to all of them.
func (r *Request) collection() {
	switch {
	case r.Verb == "delete":
		r.Verb = "deletecollection"
	case r.Verb == "get" && r.IsTrue("watch"):
		r.Verb = "watch"
	case r.Verb == "get":
		r.Verb = "list"
	}
}

// Options are those of a list or watch as kube-apiserver decodes them; the error is why it refuses to.
func (r *Request) Options() (metainternalversion.ListOptions, error) { return r.options() }

func (r *Request) decode() (o metainternalversion.ListOptions, err error) {
	for _, selector := range []string{"labelSelector", "fieldSelector"} {
		if n := len(r.Query.Get(selector)); n > MaxSelector {
			return o, fmt.Errorf("%s has %d bytes, more than %d", selector, n, MaxSelector)
		}
	}
	err = metainternalscheme.ParameterCodec.DecodeParameters(r.Query, metav1.SchemeGroupVersion, &o)
	return o, err
}

// Only is the one value that a list or watch asks for by its field selector, "" if it asks for others.
func (r *Request) Only(field string) string {
	o, err := r.Options()
	if err != nil || o.FieldSelector == nil {
		return ""
	}
	value, _ := o.FieldSelector.RequiresExactMatch(field)
	return value
}

// Authorized is the name by which the request is authorized: that of the object, or of the one that a list or watch
// selects.
func (r *Request) Authorized() string {
	if r.Name != "" || r.FieldSelector == "" || r.Verb != "list" && r.Verb != "watch" {
		return r.Name
	}
	name := r.Only("metadata.name")
	if len(content.IsPathSegmentName(name)) > 0 {
		return ""
	}
	return name
}

// In is the namespace in which an object stands. A Namespace stands in none, though it is authorized as if it stood in
// itself.
func (r *Request) In() string {
	if r.Resource.Name == "namespaces" && r.Namespace == r.Name {
		return ""
	}
	return r.Namespace
}

// IsTrue reads a boolean parameter as kube-apiserver does: present, and neither 0 nor false.
func (r *Request) IsTrue(parameter string) bool {
	values, ok := r.Query[parameter]
	return ok && len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// Reads reports whether the request is a get, list or watch of a resource.
func (r *Request) Reads() bool {
	return r.Method == http.MethodGet && (r.Verb == "get" || r.Verb == "list" || r.Verb == "watch") && r.IsResource
}

// GoesOn reports whether the request is a watch that begins where its client stands.
func (r *Request) GoesOn() bool {
	version, _ := strconv.ParseUint(r.Query.Get("resourceVersion"), 10, 64)
	return r.Verb == "watch" && version > 0 && !r.IsTrue("sendInitialEvents")
}

// lasting are the subresources whose requests last as long as both ends want.
var lasting = []string{"attach", "exec", "log", "portforward", "proxy"}

// Lasts reports whether the request lasts as long as its client wants. That is what kube-apiserver does not count as a
// request in flight either.
func (r *Request) Lasts() bool {
	if !r.IsResource {
		return strings.HasPrefix(r.Path, "/debug/pprof/")
	}
	return r.Verb == "watch" || r.Verb == "proxy" || slices.Contains(lasting, r.Subresource)
}

// Writes reports whether the request may change something.
func (r *Request) Writes() bool {
	return slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method)
}
