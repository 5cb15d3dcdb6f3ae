package identity

import (
	"strings"

	"github.com/weir-edge/weir/impl/request"
)

// Attributes are what a request is authorized by, as far as it matters here: of reads that is all.
type Attributes struct {
	// get, list or watch; of others as kube-apiserver names it.
	Verb                                                   string
	Group, Version, Resource, Subresource, Namespace, Name string
	FieldSelector, LabelSelector                           string // of lists and watches, as they were asked
	// of what is no resource: /version, /openapi/v3; then Verb is get.
	Path string
}

// AttributesOf are those of a request. ok is false if it is no read, or in a form that only the cloud should judge: of
// that nothing is learnt.
func AttributesOf(r *request.Request) (a Attributes, ok bool) {
	if !r.IsResource {
		return Attributes{Verb: r.Verb, Path: r.Path}, r.Verb == "get"
	}
	return Attributes{
		Verb: r.Verb, Group: r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Name,
		Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Authorized(),
		FieldSelector: r.FieldSelector, LabelSelector: r.LabelSelector,
	}, r.Reads() && !r.Odd
}

func (a Attributes) hash() digest {
	return hashOf(a.Verb, a.Group, a.Version, a.Resource, a.Subresource, a.Namespace, a.Name, a.FieldSelector,
		a.LabelSelector, a.Path)
}

// wider are the reads that show at least as much: who may do one of them may do this. A watch begins with what a list
// shows. Reads of one step show the same, each step shows at least what the one before shows.
func (a Attributes) wider() (steps [][]Attributes) {
	switch {
	case a.Resource == "" || a.Subresource != "" && a.Name == "":
		return nil
	case a.Subresource != "": // of each object of the namespace
		a.Name = ""
		return [][]Attributes{{a}}
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

// isServers reports whether kube-apiserver itself answers. Behind it may be servers of other groups, which it asks in
// the name of the caller, and what pods, services and nodes answer: if one of those says 401, a good token is as good
// as before.
func (a Attributes) isServers() bool {
	group := a.Group
	if path, ok := strings.CutPrefix(a.Path, "/apis/"); ok {
		group, _, _ = strings.Cut(path, "/")
	}
	return isBuiltIn(group) && a.Subresource != "proxy" && a.Verb != "proxy"
}

func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && group != "metrics.k8s.io" &&
		!strings.HasSuffix(group, ".metrics.k8s.io")
}
