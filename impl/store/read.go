package store

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/table"
)

// Knowledge is what the store can say of an object.
type Knowledge uint8

// Unknown is neither: nobody may take it for a 404.
const (
	Unknown     Knowledge = iota
	Known                 // the cloud has shown it
	KnownAbsent           // the cloud said that it does not exist, or gave a complete list without it
)

func (k Knowledge) String() string { return [...]string{"unknown", "known", "known to be absent"}[k] }

// Answer is what is known of an object.
type Answer struct {
	Knowledge
	Object *wire.Object // if it is known
	Form   Form         // of Object: the one asked for, if there is any in that
	Kind   wire.Kind    // of Object
	// AsOf is when the cloud last said so: a list that has the object or lacks it, a watch of such a list, the get itself.
	// Zero if that is not known.
	AsOf time.Time
}

// Get tells what is known of an object, whoever asked for it: the caller must have made sure that this component may
// read it. A form other than the one asked for is given if there is no other; to make one from it may lose fields.
func (s *Store) Get(component string, r Resource, f Form, k Key) Answer {
	s.mu.RLock()
	a, asked := s.answer(r, f, k)
	own := s.collections[One(component, r, f, k).encode()]
	s.mu.RUnlock()
	s.askAll(asked, own)
	return a
}

// askAll notes that collections are in use. It takes no lock for writing if that was noted recently.
func (s *Store) askAll(all ...*collection) {
	now := s.Clock.Now()
	s.mu.RLock()
	stale := slices.ContainsFunc(all, func(c *collection) bool { return c != nil && now.Sub(c.asked) >= s.Forget/30 })
	s.mu.RUnlock()
	if !stale {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range all {
		if c != nil && s.collections[c.key] == c {
			s.ask(c)
		}
	}
}

func (s *Store) answer(r Resource, f Form, k Key) (Answer, *collection) {
	c := s.holder(r, k)
	var absent, stale bool
	var newest uint64
	for _, try := range f.others() {
		form, v := s.best(r, k, try)
		switch {
		case v == nil:
		case v.condition == gone:
			absent = true
			newest = max(newest, v.version)
		case v.condition == left && (c == nil || !s.isMember(c, k)):
			stale = true
		case absent && newest >= v.version:
		default:
			if a, ok := s.give(r, k, try, form, v); ok {
				if c != nil {
					a.AsOf = s.asOf(c)
				}
				return a, c
			}
			stale = true // it was there
		}
	}
	if stale {
		return Answer{}, nil
	}
	if cover := s.cover(r, k); cover != nil {
		return Answer{Knowledge: KnownAbsent, AsOf: s.asOf(cover)}, cover
	}
	if absent {
		return Answer{Knowledge: KnownAbsent}, nil
	}
	return Answer{}, nil
}

// others is a form and then those that will do in its place.
func (f Form) others() []Form { return []Form{f, f ^ 1} }

// Version is that of an object as it was last shown in a form; 0: it was not.
func (s *Store) Version(r Resource, k Key, f Form) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.fact(r, k, f); v != nil && v.epoch == s.epoch {
		return v.version
	}
	return 0
}

// Holders are the collections that have an object: who may read one of them may read it.
func (s *Store) Holders(r Resource, k Key) (all []Shape) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.byResource[r] {
		if c.complete && (c.Namespace == "" || c.Namespace == k.Namespace) && s.isMember(c, k) {
			all = append(all, c.Shape)
		}
	}
	return all
}

// Collection is a list that was recorded, and the events since.
type Collection struct {
	Version uint64
	Kind    wire.Kind // of the items
	// ListKind is what the list declares; "": the same with List behind it, as far as is known.
	ListKind string
	Form     Form      // of the items: the one asked for, if there is any in that
	AsOf     time.Time // when the cloud last said so
	Keys     []Key     // of the items, in the order of kube-apiserver
	// Items reads the items one by one, in this order, into memory of their own.
	Items iter.Seq[*wire.Object]
}

// Read gives a list if it is known whole: as this component asked for it, or another, or as a part of a list without
// selectors. As for Get, the caller must have made sure that the component may read it.
func (s *Store) Read(shape Shape) (*Collection, bool) {
	s.mu.RLock()
	own := s.collections[shape.encode()]
	from, out := s.read(shape)
	s.mu.RUnlock()
	s.askAll(own, from)
	return out, out != nil
}

func (s *Store) read(shape Shape) (*collection, *Collection) {
	for _, c := range s.candidates(shape) {
		match, ok := filterOf(shape, c.Shape)
		if !ok {
			continue
		}
		form := shape.Form
		switch {
		case c.Form.metadata() && !form.metadata():
			continue
		case form.full() != c.Form.full():
			form ^= 1
		}
		if keys, ok := s.gather(c, form, match); ok {
			out := &Collection{Version: c.version, Kind: c.kind, Form: form, AsOf: s.asOf(c), Keys: keys}
			if !form.metadata() {
				out.ListKind = s.listKind(c)
			}
			if form.metadata() && !c.Form.metadata() {
				out.Kind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
			}
			out.Items = s.items(c.Resource, form, keys)
			return c, out
		}
	}
	return nil, nil
}

// listKind is what lists of a collection declare, by itself or by another list of the resource: one that came as a
// stream does not say it.
func (s *Store) listKind(c *collection) string {
	for _, other := range s.byResource[c.Resource] {
		if c.listKind == "" && other.kind == c.kind {
			c = other
		}
	}
	return c.listKind
}

// candidates are the complete collections that may answer for a shape, the best first: its own, those in its form, the
// freshest.
func (s *Store) candidates(shape Shape) (all []*collection) {
	for _, c := range s.byResource[shape.Resource] {
		if c.complete && (c.Namespace == "" || c.Namespace == shape.Namespace) {
			all = append(all, c)
		}
	}
	rank := func(c *collection) int {
		switch {
		case c.Shape == shape:
			return 0
		case c.Form == shape.Form:
			return 1
		case c.Form == shape.Form.full():
			return 2
		}
		return 3
	}
	slices.SortFunc(all, func(a, b *collection) int {
		return cmp.Or(rank(a)-rank(b), s.asOf(b).Compare(s.asOf(a)), cmp.Compare(b.version, a.version),
			strings.Compare(a.key, b.key))
	})
	return all
}

// filterOf tells which members of a collection belong to a shape; ok is false if the collection does not have all of
// these.
func filterOf(shape, of Shape) (match func(*wire.Object) bool, ok bool) {
	inNamespace := func(o *wire.Object) bool { return shape.Namespace == "" || o.Namespace == shape.Namespace }
	if shape.Labels == of.Labels && shape.Fields == of.Fields {
		return inNamespace, true
	}
	if of.Labels != "" || of.Fields != "" {
		return nil, false
	}
	sel, err := labels.Parse(shape.Labels)
	if err != nil {
		return nil, false
	}
	bare := shape
	bare.Labels = ""
	namespace, name, ok := bare.scope() // other fields than these cannot be judged here
	return func(o *wire.Object) bool {
		return inNamespace(o) && (namespace == "" || o.Namespace == namespace) && (name == "" || o.Name == name) &&
			sel.Matches(o.Labels)
	}, ok
}

// gather checks that every member is whole, and gives the keys of those that match. What is gone since the list was
// recorded is left out: the cloud has said so, to somebody else.
func (s *Store) gather(c *collection, form Form, match func(*wire.Object) bool) (keys []Key, ok bool) {
	all, ok := s.keys(c)
	if !ok {
		s.damaged(table.Shapes, c.key, "members are missing")
		return nil, false
	}
	for _, k := range all {
		have, v := s.best(c.Resource, k, form)
		if v == nil {
			s.damaged(table.Shapes, c.key, "an object is missing: "+k.String())
			return nil, false
		}
		if v.condition == gone {
			continue
		}
		a, ok := s.give(c.Resource, k, form, have, v)
		if !ok {
			return nil, false
		}
		if match(a.Object) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return keys, true
}

// items reads objects as they are given out, so that a list is in memory item by item.
func (s *Store) items(r Resource, form Form, keys []Key) iter.Seq[*wire.Object] {
	one := func(k Key) (a Answer, ok bool) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		have, v := s.best(r, k, form)
		if v == nil || v.condition == gone {
			return a, false
		}
		return s.give(r, k, form, have, v)
	}
	return func(yield func(*wire.Object) bool) {
		for _, k := range keys {
			if a, ok := one(k); ok && !yield(a.Object) {
				return
			}
		}
	}
}

// give reads an object, and gives what is in one form in another of the same encoding.
func (s *Store) give(r Resource, k Key, want, have Form, v *fact) (a Answer, ok bool) {
	raw, err := s.raw(r, k, have, v)
	a = Answer{Knowledge: Known, Form: want, Kind: v.kind}
	if err == nil {
		a.Object, err = wire.ParseObject(have.encoding(), raw)
	}
	if err == nil && want != have {
		if raw, err = a.Object.Metadata(have.encoding()); err == nil {
			a.Object, err = wire.ParseObject(want.encoding(), raw)
		}
		a.Kind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	}
	if err != nil {
		s.unreadable(r, k, have, err)
	}
	return a, err == nil
}
