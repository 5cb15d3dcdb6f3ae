package store

import (
	"strings"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/table"
)

// Got records the answer to a get.
func (s *Store) Got(component string, r Resource, f Form, kind wire.Kind, o *wire.Object) error {
	l, err := s.List(One(component, r, f, Key{o.Namespace, o.Name}), kind)
	if err != nil {
		return err
	}
	defer l.Close()
	l.Add(o)
	l.Commit(o.Version)
	return nil
}

// NotFound records that the cloud answered a get with 404: that the object does not exist, not that the path does not.
func (s *Store) NotFound(component string, r Resource, f Form, k Key) error {
	l, err := s.List(One(component, r, f, k), wire.Kind{})
	if err != nil {
		return err
	}
	defer l.Close()
	s.mu.RLock()
	version := s.version(r, k)
	s.mu.RUnlock()
	l.Commit(version)
	return nil
}

// Written records the answer to a write. It is kept if the object is, in that form: somebody reads it. Or if somebody
// was told that it does not exist, which is so no more: who got 404 and then created it must not be told 404 again. It
// is on the disk within Config.Every: whoever wrote it should not find it undone after a power cut, and do again what
// was done, as a kubelet would a finished pod.
func (s *Store) Written(r Resource, f Form, kind wire.Kind, o *wire.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := Key{o.Namespace, o.Name}
	keep := s.fact(r, k, f) != nil || s.cover(r, k) != nil
	for _, c := range s.byResource[r] {
		if _, name, ok := c.scope(); !ok || !c.complete || c.Shape != One(c.Component, r, f, k) || name != k.Name ||
			s.isMember(c, k) || o.Version < c.version {
			continue
		}
		s.show(r, f, kind, o) // first: a member must have an object
		s.setMember(c, k, true)
		c.version, c.kind = o.Version, kind
	}
	if keep {
		s.show(r, f, kind, o)
		s.urgent = true
	}
}

// Hurry has what was shown so far on the disk within Config.Every, as if a client had written it: one did.
func (s *Store) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urgent = true
}

// Listing records a list, page by page. Close it in any case.
type Listing struct {
	*recording
	s        *Store
	kind     wire.Kind
	listKind string
}

// List begins to record a list.
func (s *Store) List(shape Shape, kind wire.Kind) (*Listing, error) {
	if err := shape.validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Listing{recording: s.recordings.begin(shape), s: s, kind: kind}, nil
}

// Add takes an item. It is known from now on, whatever becomes of the list.
func (l *Listing) Add(o *wire.Object) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.left = l.left || l.s.crowded(l.shape.Component); l.left {
		return
	}
	l.keys[l.s.show(l.shape.Resource, l.shape.Form, l.kind, o)] = true
	l.s.bound()
}

// Declares says what kind the list says that it is.
func (l *Listing) Declares(kind string) {
	if kind != l.kind.Kind+"List" {
		l.listKind = kind
	}
}

// Close ends it. Without a Commit before, the list counts for nothing.
func (l *Listing) Close() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.recordings.end(l.recording)
}

// Commit takes it that the list was complete, and what its version was.
func (l *Listing) Commit(version uint64) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.left || l.s.crowded(l.shape.Component) {
		return
	}
	c := l.s.collectionOf(l.shape)
	c.listKind = l.listKind
	l.s.commit(c, l.kind, version, l.keys)
	l.s.bound()
}

// commit makes the members of a collection those of a complete list.
func (s *Store) commit(c *collection, kind wire.Kind, version uint64, keys map[Key]bool) {
	s.ask(c)
	if c.complete && c.epoch == s.epoch && version < c.version {
		return // a lagging server: what is known is newer
	}
	old, whole := s.keys(c)
	if !whole { // members that do not add up: file them again
		s.scan(table.Members, c.id, func(key string, _ []byte) { s.pending.Set(table.Members, key, nil) })
		c.count, c.sum, old = 0, 0, nil
	}
	for _, k := range old {
		if !keys[k] {
			s.setMember(c, k, false)
			s.leave(c.Resource, k, s.absence(c), version)
		}
	}
	for k := range keys {
		s.setMember(c, k, true)
	}
	s.prove(c, version, keys)
	if !c.complete || c.version != version || c.epoch != s.epoch || c.kind != kind && kind.Kind != "" {
		s.dirty[c] = true
	}
	if kind.Kind != "" {
		c.kind = kind
	}
	c.complete, c.version, c.epoch, c.asOf = true, version, s.epoch, s.Clock.Now()
}

// absence is what it means that an object is no member of a collection any more.
func (s *Store) absence(c *collection) condition {
	if _, _, ok := c.scope(); ok {
		return gone
	}
	if c.Resource == (Resource{Version: "v1", Name: "pods"}) && c.Labels == "" &&
		strings.HasPrefix(c.Fields, "spec.nodeName=") && !strings.Contains(c.Fields, ",") {
		return gone // a pod never leaves its node
	}
	return left
}

// prove takes it of all objects in the scope of a complete list that those not in it do not exist.
func (s *Store) prove(c *collection, version uint64, keys map[Key]bool) {
	namespace, name, ok := c.scope()
	if !ok {
		return
	}
	if name != "" {
		if k := (Key{namespace, name}); !keys[k] {
			s.leave(c.Resource, k, gone, version)
		}
		return
	}
	prefix := c.Resource.String() + "\x00"
	if namespace != "" {
		prefix += namespace + "\x00"
	}
	var absent []Key
	s.scan(table.Objects, prefix, func(key string, payload []byte) {
		_, encoded := splitObjectKey(key)
		k := parseKey(encoded)
		if !keys[k] && len(payload) > 0 && condition(payload[0]) != gone {
			absent = append(absent, k)
		}
	})
	for _, k := range absent {
		if s.version(c.Resource, k) <= version {
			s.leave(c.Resource, k, gone, version)
		}
	}
}
