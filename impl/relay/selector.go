package relay

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Selector is which objects a reader wants. The zero Selector is all.
type Selector struct {
	prefix string // of keys: "namespace/"
	key    string // of the one object that can match
	labels labels.Selector
	fields fields.Selector
	res    *Resource
}

// in is a selector of everything of a namespace; "" is all of them.
func in(namespace string) (s Selector) {
	if namespace != "" {
		s.prefix = namespace + "/"
	}
	return s
}

// by narrows a selector. It refuses fields that kube-apiserver refuses.
func (s Selector) by(res *Resource, l labels.Selector, f fields.Selector) (Selector, error) {
	s.res = res
	if l != nil && !l.Empty() {
		s.labels = l
	}
	if f == nil || f.Empty() {
		return s, nil
	}
	f, err := f.Transform(s.convertField)
	if err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	s.fields = f
	if ns, ok := f.RequiresExactMatch("metadata.namespace"); ok && s.prefix == "" && s.res.Namespaced {
		s.prefix = ns + "/"
	}
	if name, ok := f.RequiresExactMatch("metadata.name"); ok && (s.prefix != "" || !s.res.Namespaced) {
		s.key = s.prefix + name
	}
	return s, nil
}

// convertField refuses field selectors that kube-apiserver refuses: an ignored selector would widen an answer (rule 8).
func (s *Selector) convertField(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "metadata.namespace":
		return label, value, nil
	}
	b := s.res.builtin
	if b != nil && b.Aliases[label] != "" {
		label = b.Aliases[label]
	}
	if b == nil {
		return "", "", fmt.Errorf("field label not supported: %s", label)
	}
	if _, ok := b.Fields[label]; ok {
		return label, value, nil
	}
	if b.Fields == nil && b.Group != "" {
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", label, "metadata.name",
			"metadata.namespace")
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// fixed reports whether an object matches for as long as its labels stay.
func (s *Selector) fixed() bool {
	return s.fields == nil || !slices.ContainsFunc(s.fields.Requirements(), func(q fields.Requirement) bool {
		return q.Field != "metadata.name" && q.Field != "metadata.namespace"
	})
}

// all reports whether the selector matches everything in its namespace.
func (s *Selector) all() bool { return s.labels == nil && s.fields == nil }

// Matches reports whether an object is among them.
func (s *Selector) Matches(o *wire.Object) bool {
	if o == nil || !strings.HasPrefix(o.Key, s.prefix) {
		return false
	}
	if s.labels != nil && !s.labels.Matches(o.Labels) {
		return false
	}
	return s.fields == nil || s.fields.Matches(objectFields{o, s.res})
}

// view tells how an event looks through a selector: which type, and whether with the previous content. typ is "" if not
// at all. An object that enters the selector is ADDED, one that leaves it DELETED with its previous content
// (convertToWatchEvent in storage/cacher).
func (s *Selector) view(ev *mvcc.Event) (typ string, left bool) {
	is, was := !ev.Deleted && s.Matches(ev.Cur), s.Matches(ev.Prev)
	switch {
	case is && was:
		return wire.Modified, false
	case is:
		return wire.Added, false
	case was && ev.Deleted:
		return wire.Deleted, false
	case was:
		return wire.Deleted, true
	}
	return "", false
}

// objectFields implements fields.Fields over an undecoded object.
type objectFields struct {
	o   *wire.Object
	res *Resource
}

func (f objectFields) Has(field string) bool { return true }

func (f objectFields) Get(field string) string {
	switch field {
	case "metadata.name":
		return f.o.Name
	case "metadata.namespace":
		return f.o.Namespace
	}
	b := f.res.builtin
	v := wire.Path(f.o.Raw, b.Fields[field]...)
	if b.Bools[field] && v == "" {
		return "false"
	}
	return v
}
