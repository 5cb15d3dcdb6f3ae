// Package request reads what an HTTP request asks of the Kubernetes API, once, at the door. Who may do it, which filter applies, which relay, store or queue
// answers: all of them go by the same value.
//
// It reads paths and queries as kube-apiserver does (k8s.io/apiserver/pkg/endpoints/request, RequestInfoFactory). A Request is immutable, and may be read by many.
package request

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resource is one of the API's.
type Resource struct {
	Group   string // "" is the core group
	Version string
	Name    string // plural: "pods"
}

// Request is what is asked.
type Request struct {
	// Verb is that of kube-apiserver: get, list, watch, create, update, patch, delete or deletecollection; of what is no resource the method in small
	// letters. It is empty for a method that means nothing for resources.
	Verb string
	// IsResource is false of /version and the like: then Path is all there is.
	IsResource  bool
	Resource    Resource
	Subresource string // of an object: "status"
	Rest        string // what follows the subresource, which kube-apiserver does not look at: the path behind pods/web/proxy
	Namespace   string // "": all of them, or a resource that has none; that of a Namespace is its own name
	// Name of the object; "" for a collection. A list or watch whose field selector asks for one name has it too, since it is authorized by it.
	Name string
	// Of lists, watches and deletions of collections, as they were sent.
	LabelSelector, FieldSelector string

	// Options are of a list or watch that is no named one, as kube-apiserver decodes them; Err is why it refuses to.
	Options metainternalversion.ListOptions
	Err     error

	Path  string
	Query url.Values
	// Odd tells that only the cloud should judge the request: deprecated paths (/watch/, /proxy/), and those that are not clean. What stands above is then how
	// kube-apiserver reads it.
	Odd bool

	named bool // Name stands in the path
}

// Parse reads a request.
func Parse(req *http.Request) *Request {
	r := &Request{Verb: strings.ToLower(req.Method), Path: req.URL.Path, Query: req.URL.Query()}
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.Resource.Group, parts = parts[1], parts[2:]
	default:
		return r
	}
	r.IsResource, r.Resource.Version, parts = true, parts[0], parts[1:]
	r.Odd = !strings.HasPrefix(r.Path, "/")
	for _, part := range parts {
		r.Odd = r.Odd || part == "" || part == "." || part == ".."
	}
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
	}
	return r
}

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
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
		r.Name, r.named = parts[1], true
	}
	if len(parts) > 2 && r.Verb != "proxy" {
		r.Subresource, r.Rest = parts[2], strings.Join(parts[3:], "/")
	}
}

// collection reads what a request that names no object does to all of them.
func (r *Request) collection() {
	switch r.Verb {
	case "delete":
		r.Verb = "deletecollection"
	case "get":
		r.Verb = "list"
		r.Options, r.Err = r.options()
		if r.Err != nil && r.IsTrue("watch") || r.Err == nil && r.Options.Watch {
			r.Verb = "watch"
		}
		if sel := r.Options.FieldSelector; r.Err == nil && sel != nil {
			if name, ok := sel.RequiresExactMatch("metadata.name"); ok && len(content.IsPathSegmentName(name)) == 0 {
				r.Name = name
			}
		}
	}
}

// options decodes the options of a list or watch.
func (r *Request) options() (o metainternalversion.ListOptions, err error) {
	for _, selector := range []string{"labelSelector", "fieldSelector"} {
		if n := len(r.Query.Get(selector)); n > MaxSelector {
			r.Odd = true
			return o, fmt.Errorf("%s has %d bytes, more than %d", selector, n, MaxSelector)
		}
	}
	err = metainternalscheme.ParameterCodec.DecodeParameters(r.Query, metav1.SchemeGroupVersion, &o)
	return o, err
}

// MaxSelector bounds selectors. The cloud judges a request with a longer one.
const MaxSelector = 8 << 10

// IsTrue reads a boolean parameter as kube-apiserver does: present, and neither 0 nor false.
func (r *Request) IsTrue(parameter string) bool {
	values, ok := r.Query[parameter]
	return ok && len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// Reads tells whether the request is a get, list or watch of a resource.
func (r *Request) Reads() bool {
	return r.IsResource && (r.Verb == "get" || r.Verb == "list" || r.Verb == "watch")
}

// One tells whether it is about the object that its path names.
func (r *Request) One() bool { return r.named }
