package offline

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-edge/weir/impl/store"
)

// The verbs that this package tells apart.
const (
	verbGet   = "get"
	verbList  = "list"
	verbWatch = "watch"
	verbWrite = "write" // all others
)

// request is what an HTTP request asks of objects.
type request struct {
	verb           string
	resource       store.Resource
	namespace      string // "" is all, or a cluster-scoped resource
	name           string // "" for a collection
	subresource    string
	labels, fields string // selectors, as asked
}

// parse reads a request as kube-apiserver's RequestInfoFactory does (endpoints/request/requestinfo.go). ok is false if it is not
// about objects, or in a deprecated form.
func parse(req *http.Request) (q request, ok bool) {
	if len(req.Header["Upgrade"]) > 0 {
		return q, false
	}
	p := strings.Split(strings.TrimPrefix(req.URL.Path, "/"), "/")
	switch {
	case len(p) >= 3 && p[0] == "api":
		q.resource.Version, p = p[1], p[2:]
	case len(p) >= 4 && p[0] == "apis":
		q.resource.Group, q.resource.Version, p = p[1], p[2], p[3:]
	default:
		return q, false
	}
	if p[len(p)-1] == "" && len(p) > 1 { // a slash at the end
		p = p[:len(p)-1]
	}
	for _, part := range p {
		if part == "" || part == "." || part == ".." {
			return q, false
		}
	}
	if p[0] == "watch" || p[0] == "proxy" {
		return q, false
	}
	if p[0] == "namespaces" && len(p) > 2 && p[2] != "status" && p[2] != "finalize" {
		q.namespace, p = p[1], p[2:]
	}
	q.resource.Name = p[0]
	if len(p) > 1 {
		q.name = p[1]
	}
	q.subresource = strings.Join(p[min(len(p), 2):], "/")
	switch {
	case req.Method != http.MethodGet:
		q.verb = verbWrite
	case q.name != "":
		q.verb = verbGet
	default:
		query := req.URL.Query()
		if q.verb = verbList; isTrue(query, "watch") {
			q.verb = verbWatch
		}
		q.labels, q.fields = query.Get("labelSelector"), query.Get("fieldSelector")
	}
	return q, true
}

// isTrue reads a boolean query parameter as kube-apiserver does: present and neither false nor 0.
func isTrue(q url.Values, key string) bool {
	values, ok := q[key]
	return ok && len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

func (q *request) key() store.Key { return store.Key{Namespace: q.namespace, Name: q.name} }

// shape is the collection that a list or watch is about.
func (q *request) shape(component string, f store.Form) store.Shape {
	return store.Shape{Component: component, Resource: q.resource, Form: f, Namespace: q.namespace, Labels: q.labels, Fields: q.fields}
}

// String is how people name it.
func (q *request) String() string {
	s := q.resource.Name
	if q.resource.Group != "" {
		s += "." + q.resource.Group
	}
	if q.name != "" {
		s += " " + q.name
	}
	if q.subresource != "" {
		s += " (" + q.subresource + ")"
	}
	if q.namespace != "" {
		s += " in " + q.namespace
	}
	if sel := strings.Trim(q.labels+" "+q.fields, " "); sel != "" {
		s += " with " + sel
	}
	return s
}
