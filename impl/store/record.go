package store

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/seal"
	"github.com/weir-edge/weir/impl/store/table"
)

func objectKey(r Resource, k Key, f Form) string {
	return r.String() + "\x00" + k.encode() + "\x00" + string(rune('0'+f))
}

// splitObjectKey gives the resource and the encoded key of an object.
func splitObjectKey(key string) (resource, k string) {
	resource, k, _ = strings.Cut(key, "\x00")
	return resource, k[:max(len(k)-2, 0)]
}

// fact reads what is known of an object in a form, nil if nothing is. mu must be held.
func (s *Store) fact(r Resource, k Key, f Form) *fact {
	key := objectKey(r, k, f)
	b, ok := s.get(table.Objects, key)
	if !ok {
		return nil
	}
	v, err := parseFact(b)
	if err != nil {
		s.damaged(table.Objects, key, err.Error())
		return nil
	}
	return v
}

// learn takes a fact, if it is news. mu must be held for writing.
func (s *Store) learn(r Resource, k Key, f Form, v *fact) {
	old := s.fact(r, k, f)
	if old != nil && !v.newer(old) && (!old.sealed || s.Key.Fits(old.raw)) { // one that cannot be read is no use
		return
	}
	if f.metadata() && v.condition == present {
		// The whole object in the same encoding has it, too.
		if full := s.fact(r, k, f.full()); full != nil && full.condition == present && full.epoch == v.epoch && full.version >= v.version && v.version > 0 {
			return
		}
	}
	key := objectKey(r, k, f)
	s.sealFact(v, key)
	s.put(table.Objects, key, v.encode())
}

// sealFact encrypts the bytes of a fact that stands under a key, if there are any and if they can be.
func (s *Store) sealFact(v *fact, key string) {
	if v.sealed = v.raw != nil && s.Key != nil; v.sealed {
		v.raw = s.Key.Seal(v.raw, append(v.head(), key...))
	}
}

// sealed is the payload of an object's row as it is kept where there is a key, nil if it cannot be read.
func (s *Store) sealed(key string, payload []byte) []byte {
	v, err := parseFact(payload)
	if err != nil {
		return nil
	}
	if v.raw == nil || v.sealed {
		return payload
	}
	s.sealFact(v, key)
	return v.encode()
}

// show takes an object that the cloud has shown.
func (s *Store) show(r Resource, f Form, kind wire.Kind, o *wire.Object) Key {
	k := Key{o.Namespace, o.Name}
	s.learn(r, k, f, &fact{condition: present, epoch: s.epoch, version: o.Version, uid: o.UID, kind: kind, raw: o.Raw})
	return k
}

// leave takes it that the cloud has said, at a version, that an object is gone, or that it left a collection. This goes for
// every form that there is of it.
func (s *Store) leave(r Resource, k Key, what condition, version uint64) {
	for f := range forms {
		old := s.fact(r, k, f)
		if old == nil || old.condition == gone {
			continue
		}
		v := &fact{condition: what, epoch: s.epoch, version: version, uid: old.uid, kind: old.kind}
		if what == gone {
			s.learn(r, k, f, v)
			continue
		}
		// It keeps its bytes and version: others may hold it.
		if old.condition == present && old.version < version && old.epoch == s.epoch {
			v.version = old.version
			if raw, err := s.raw(r, k, f, old); err == nil {
				v.raw = raw
				key := objectKey(r, k, f)
				s.sealFact(v, key)
				s.put(table.Objects, key, v.encode())
			}
		}
	}
}

// raw gives the bytes of a fact, decrypted.
func (s *Store) raw(r Resource, k Key, f Form, v *fact) ([]byte, error) {
	if !v.sealed {
		return v.raw, nil
	}
	return s.Key.Open(v.raw, append(v.head(), objectKey(r, k, f)...))
}

// unreadable notes that the bytes of an object are of no use. Without the key they stay: it may come back.
func (s *Store) unreadable(r Resource, k Key, f Form, err error) {
	if !errors.Is(err, seal.ErrNoKey) {
		s.damaged(table.Objects, objectKey(r, k, f), err.Error())
	}
}

// version is the newest at which anything is known of an object.
func (s *Store) version(r Resource, k Key) (v uint64) {
	for f := range forms {
		if x := s.fact(r, k, f); x != nil && x.epoch == s.epoch {
			v = max(v, x.version)
		}
	}
	return v
}

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

// Written records the answer to a write. It is kept if the object is, in that form: somebody reads it. Or if somebody was told that it
// does not exist, which is so no more: who got 404 and then created it must not be told 404 again. It is on the disk within Config.Every: whoever wrote it should not
// find it undone after a power cut, and do again what was done, as a kubelet would a finished pod.
func (s *Store) Written(r Resource, f Form, kind wire.Kind, o *wire.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := Key{o.Namespace, o.Name}
	keep := s.fact(r, k, f) != nil || s.cover(r, k) != nil
	for _, c := range s.byResource[r] {
		if _, name, ok := c.scope(); !ok || !c.complete || c.Shape != One(c.Component, r, f, k) || name != k.Name || s.isMember(c, k) || o.Version < c.version {
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

// recording is a list under way. Its items are in no collection yet, and are kept as if they were.
type recording struct {
	shape Shape
	keys  map[Key]bool
	left  bool // there was no room for an item: the list will not be whole
}

// begin notes that a list is under way, and end that it is no more. mu must be held for writing.
func (s *Store) begin(shape Shape) *recording {
	r := &recording{shape: shape, keys: map[Key]bool{}}
	s.recordings[r] = true
	return r
}

func (s *Store) end(r *recording) { delete(s.recordings, r) }

// crowded tells whether what waits for the disk has no more room for a component. The last half is the node's own:
// nobody else's lists may make the store give up what its kubelet lives from.
func (s *Store) crowded(component string) bool {
	return s.pending.Bytes > maxPending/2 && Owner(component) != ""
}

// Listing records a list, page by page. Close it in any case.
type Listing struct {
	*recording
	s    *Store
	kind wire.Kind
}

// List begins to record a list.
func (s *Store) List(shape Shape, kind wire.Kind) (*Listing, error) {
	if err := shape.validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Listing{recording: s.begin(shape), s: s, kind: kind}, nil
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

// Close ends it. Without a Commit before, the list counts for nothing.
func (l *Listing) Close() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.end(l.recording)
}

// Commit takes it that the list was complete, and what its version was.
func (l *Listing) Commit(version uint64) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.left || l.s.crowded(l.shape.Component) {
		return
	}
	l.s.commit(l.s.collectionOf(l.shape), l.kind, version, l.keys)
	l.s.bound()
}

// commit makes the members of a collection those of a complete list.
func (s *Store) commit(c *collection, kind wire.Kind, version uint64, keys map[Key]bool) {
	s.ask(c)
	if c.complete && c.epoch == s.epoch && version < c.version {
		return // a lagging server: what is known is newer
	}
	old, whole := s.keys(c)
	if !whole { // members that do not add up: file them anew
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
	if c.Resource == (Resource{Version: "v1", Name: "pods"}) && c.Labels == "" && strings.HasPrefix(c.Fields, "spec.nodeName=") && !strings.Contains(c.Fields, ",") {
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

// NewHistory says that the cloud's history is another one: it was restored from a backup. What is kept stays, as all there is while the
// cloud is away, but any word of the new history counts more, whatever its version.
func (s *Store) NewHistory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.Logger.Warn("the cloud has another history: what is kept counts until the cloud shows something newer", "epoch", s.epoch)
	s.put(table.About, table.EpochRow, fmt.Append(nil, s.epoch))
	s.urgent = true
}

// Fresh says that the cloud was reached at a time: what is watched is as of then.
func (s *Store) Fresh(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Sub(s.freshAt) > connectedWithin {
		s.freshSince = at
	}
	if at.After(s.freshAt) {
		s.freshAt = at
	}
}
