package offline

import (
	"strings"

	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// ofObjects reports whether a request is about objects, in a form that not only the cloud should judge.
func ofObjects(q *request.Request) bool { return q.IsResource && !q.Odd && !q.Upgrade }

// verbOf is what requests are counted by.
func verbOf(q *request.Request) string {
	switch {
	case !ofObjects(q):
		return "document"
	case q.Reads():
		return q.Verb
	}
	return "write"
}

// KeyOf names the object that a request is about in the store.
func KeyOf(q *request.Request) store.Key { return store.Key{Namespace: q.In(), Name: q.Name} }

// shapeOf is the collection that a list or watch is about.
func shapeOf(q *request.Request, component string, f store.Form) store.Shape {
	return store.Shape{
		Component: component, Resource: q.Resource, Form: f, Namespace: q.Namespace, Labels: q.LabelSelector,
		Fields: q.FieldSelector,
	}
}

// naming is how people name what is asked for.
func naming(q *request.Request) string {
	s := q.Resource.Name
	if q.Resource.Group != "" {
		s += "." + q.Resource.Group
	}
	if q.Name != "" {
		s += " " + q.Name
	}
	if q.Subresource != "" {
		s += " (" + q.Subresource + ")"
	}
	if q.In() != "" {
		s += " in " + q.In()
	}
	if sel := strings.Trim(q.LabelSelector+" "+q.FieldSelector, " "); sel != "" {
		s += " with " + sel
	}
	return s
}
