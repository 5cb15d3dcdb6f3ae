package identity

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// MaxSelector bounds selectors of reads that the cloud alone does not judge. Longer ones go there, and what it says is not learnt.
const MaxSelector = 8 << 10

// Attributes are what a read is authorized by.
type Attributes struct {
	Verb                                                   string // get, list or watch
	Group, Version, Resource, Subresource, Namespace, Name string
	FieldSelector, LabelSelector                           string // of lists and watches, as they were asked
	Path                                                   string // of what is no resource: /version, /openapi/v3; then Verb is get
}

// AttributesOf reads them from a request as kube-apiserver's RequestInfoFactory does. ok is false if it is no read, or in a form that only the
// cloud should judge: the deprecated /watch/ and /proxy/ paths, a path that is not clean, a selector beyond MaxSelector.
func AttributesOf(req *http.Request) (a Attributes, ok bool) {
	if req.Method != http.MethodGet || !strings.HasPrefix(req.URL.Path, "/") {
		return a, false
	}
	p := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(p) >= 3 && p[0] == "api":
		a.Version, p = p[1], p[2:]
	case len(p) >= 4 && p[0] == "apis":
		a.Group, a.Version, p = p[1], p[2], p[3:]
	default:
		return Attributes{Verb: "get", Path: req.URL.Path}, true
	}
	for _, part := range p {
		if part == "" || part == "." || part == ".." {
			return a, false
		}
	}
	if p[0] == "watch" || p[0] == "proxy" {
		return a, false
	}
	if p[0] == "namespaces" && len(p) > 1 {
		a.Namespace = p[1]
		if len(p) > 2 && p[2] != "status" && p[2] != "finalize" {
			p = p[2:]
		}
	}
	a.Resource = p[0]
	if len(p) > 1 {
		a.Name = p[1]
	}
	if len(p) > 2 {
		a.Subresource = strings.Join(p[2:], "/")
	}
	if a.Name != "" {
		a.Verb = "get"
		return a, true
	}
	query := req.URL.Query()
	a.Verb = "list"
	if isTrue(query, "watch") {
		a.Verb = "watch"
	}
	a.FieldSelector, a.LabelSelector = query.Get("fieldSelector"), query.Get("labelSelector")
	if len(a.FieldSelector) > MaxSelector || len(a.LabelSelector) > MaxSelector {
		return a, false
	}
	if a.FieldSelector != "" { // one that names an object is authorized by that name
		if sel, err := fields.ParseSelector(a.FieldSelector); err == nil {
			if name, ok := sel.RequiresExactMatch("metadata.name"); ok && name != "." && name != ".." && !strings.ContainsAny(name, "/%") {
				a.Name = name
			}
		}
	}
	return a, true
}

// isTrue reads a boolean query parameter as kube-apiserver does: present and neither false nor 0.
func isTrue(q url.Values, key string) bool {
	values, ok := q[key]
	if !ok || len(values) == 0 {
		return false
	}
	return values[0] != "0" && !strings.EqualFold(values[0], "false")
}

func (a Attributes) hash() digest {
	return hashOf(a.Verb, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name, a.FieldSelector, a.LabelSelector, a.Path)
}

// wider are the reads that show at least as much: who may do one of them may do this. A watch begins with what a list shows. Reads of one step show the
// same, each step shows at least what the one before shows.
func (a Attributes) wider() (steps [][]Attributes) {
	if a.Resource == "" || a.Subresource != "" {
		return nil
	}
	byName := "metadata.name=" + a.Name
	var same []Attributes
	for _, verb := range []string{"get", "list", "watch"} {
		w := a
		w.Verb = verb
		switch {
		case verb == a.Verb:
			continue
		case a.Verb == "get":
			w.FieldSelector = byName
		case verb == "get" && (a.Name == "" || a.FieldSelector != byName || a.LabelSelector != ""):
			continue
		case verb == "get":
			w.FieldSelector = ""
		}
		same = append(same, w)
	}
	steps = append(steps, same)
	namespaces := []string{""}
	if a.Namespace != "" {
		namespaces = []string{a.Namespace, ""}
	}
	for _, ns := range namespaces {
		var step []Attributes
		for _, verb := range []string{"list", "watch"} {
			step = append(step, Attributes{Verb: verb, Group: a.Group, Version: a.Version, Resource: a.Resource, Namespace: ns})
		}
		steps = append(steps, step)
	}
	return steps
}

// listed is the list of what a watch shows.
func (a Attributes) listed() Attributes {
	a.Verb = "list"
	return a
}

func (a Attributes) String() string {
	if a.Path != "" {
		return a.Verb + " " + a.Path
	}
	s := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		s += "/" + a.Subresource
	}
	if a.Group != "" {
		s += "." + a.Group
	}
	if a.Name != "" {
		s += " " + a.Name
	}
	if a.Namespace != "" {
		s += " in " + a.Namespace
	}
	return s
}
