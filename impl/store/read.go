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
	// AsOf is when the cloud last said so: a list that has the object or lacks it, a watch of such a list, the get itself. Zero if
	// that is not known.
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
			raw, err := s.raw(r, k, form, v)
			if err == nil {
				var a Answer
				if a, err = makeAnswer(try, form, v, raw); err == nil {
					if c != nil {
						a.AsOf = s.asOf(c)
					}
					return a, c
				}
			}
			s.unreadable(r, k, form, err)
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

// makeAnswer gives what is in one form in another of the same encoding.
func makeAnswer(want, have Form, v *fact, raw []byte) (Answer, error) {
	o, err := wire.ParseObject(have.encoding(), raw)
	kind := v.kind
	if err == nil && want != have {
		if raw, err = o.Metadata(have.encoding()); err == nil {
			o, err = wire.ParseObject(want.encoding(), raw)
		}
		kind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	}
	return Answer{Knowledge: Known, Object: o, Form: want, Kind: kind}, err
}

// best is the fact from which an object can be given in a form: in that form, or, for metadata, in the full one if that is newer.
func (s *Store) best(r Resource, k Key, f Form) (Form, *fact) {
	v := s.fact(r, k, f)
	if !f.metadata() {
		return f, v
	}
	if full := s.fact(r, k, f.full()); full != nil && (v == nil || full.newer(v)) {
		return f.full(), full
	}
	return f, v
}

// holder is the freshest complete collection of which an object is a member, nil if there is none.
func (s *Store) holder(r Resource, k Key) (best *collection) {
	for _, c := range s.byResource[r] {
		if c.complete && (c.Namespace == "" || c.Namespace == k.Namespace) && s.better(c, best) && s.isMember(c, k) {
			best = c
		}
	}
	return best
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

// cover is the freshest complete collection that would have an object if it existed, nil if there is none.
func (s *Store) cover(r Resource, k Key) (best *collection) {
	for _, c := range s.byResource[r] {
		if !c.complete || !s.better(c, best) {
			continue
		}
		namespace, name, ok := c.scope()
		if ok && (namespace == "" || namespace == k.Namespace) && (name == "" || name == k.Name) && !s.isMember(c, k) {
			best = c
		}
	}
	return best
}

func (s *Store) better(c, than *collection) bool { return than == nil || s.asOf(c).After(s.asOf(than)) }

// Collection is a list that was recorded, and the events since.
type Collection struct {
	Version uint64
	Kind    wire.Kind // of the items
	Form    Form      // of the items: the one asked for, if there is any in that
	AsOf    time.Time // when the cloud last said so
	Keys    []Key     // of the items, in the order of kube-apiserver
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
			if form.metadata() && !c.Form.metadata() {
				out.Kind = wire.Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
			}
			out.Items = s.items(c.Resource, form, keys)
			return c, out
		}
	}
	return nil, nil
}

// candidates are the complete collections that may answer for a shape, the best first: its own, those in its form, the freshest.
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
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		if d := s.asOf(b).Compare(s.asOf(a)); d != 0 {
			return d
		}
		return cmp.Or(cmp.Compare(b.version, a.version), strings.Compare(a.key, b.key))
	})
	return all
}

// filterOf tells which members of a collection belong to a shape; ok is false if the collection does not have all of these.
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
		return inNamespace(o) && (namespace == "" || o.Namespace == namespace) && (name == "" || o.Name == name) && sel.Matches(o.Labels)
	}, ok
}

// gather checks that every member is whole, and gives the keys of those that match. What is gone since the list was recorded
// is left out: the cloud has said so, to somebody else.
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
		o, err := s.object(c.Resource, k, form, have, v)
		if err != nil {
			s.unreadable(c.Resource, k, have, err)
			return nil, false
		}
		if match(o) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return keys, true
}

func (s *Store) object(r Resource, k Key, want, have Form, v *fact) (*wire.Object, error) {
	raw, err := s.raw(r, k, have, v)
	if err != nil {
		return nil, err
	}
	a, err := makeAnswer(want, have, v, raw)
	return a.Object, err
}

// items reads objects as they are given out, so that a list is in memory item by item.
func (s *Store) items(r Resource, form Form, keys []Key) iter.Seq[*wire.Object] {
	one := func(k Key) *wire.Object {
		s.mu.RLock()
		defer s.mu.RUnlock()
		have, v := s.best(r, k, form)
		if v == nil || v.condition == gone {
			return nil
		}
		o, err := s.object(r, k, form, have, v)
		if err != nil {
			s.unreadable(r, k, have, err)
			return nil
		}
		return o
	}
	return func(yield func(*wire.Object) bool) {
		for _, k := range keys {
			if o := one(k); o != nil && !yield(o) {
				return
			}
		}
	}
}
