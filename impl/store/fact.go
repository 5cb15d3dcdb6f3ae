package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/table"
)

// condition is what is known of an object.
type condition uint8

const (
	present condition = iota // the cloud has shown it
	left                     // as present, but since then it left a collection, which may mean that it was deleted
	gone                     // the cloud has shown that it does not exist
)

// fact is what the cloud last said of an object in one form.
type fact struct {
	condition condition
	epoch     uint64 // life of the cloud's history, see Store.NewHistory
	version   uint64 // of the object; gone: at which it did not exist
	uid       string
	kind      wire.Kind
	sealed    bool // raw is encrypted
	raw       []byte
}

// newer reports whether f says more than old. Between a fact and one at the same version, that an object is gone counts
// most: its deletion had that version. Without versions the later word counts.
func (f *fact) newer(old *fact) bool {
	switch {
	case f.epoch != old.epoch:
		return f.epoch > old.epoch
	case f.version == 0 || old.version == 0:
		return true
	case f.version != old.version:
		return f.version > old.version
	case f.condition == present:
		return old.condition == left
	}
	return f.condition == gone && old.condition != gone
}

// head is all of it but raw. It is what the seal of raw is bound to.
func (f *fact) head() []byte {
	sealed := byte(0)
	if f.sealed {
		sealed = 1
	}
	b := []byte{byte(f.condition), sealed}
	b = binary.AppendUvarint(b, f.epoch)
	b = binary.AppendUvarint(b, f.version)
	for _, s := range []string{f.uid, f.kind.APIVersion, f.kind.Kind} {
		b = disk.PackBytes(b, s)
	}
	return b
}

func (f *fact) encode() []byte { return append(f.head(), f.raw...) }

// parseFact reads what encode wrote; raw is a part of b.
func parseFact(b []byte) (*fact, error) {
	p := disk.NewUnpacker(b)
	f := &fact{condition: condition(p.Byte())}
	sealed := p.Byte()
	f.sealed = sealed == 1
	f.epoch, f.version = p.Uvarint(), p.Uvarint()
	f.uid, f.kind.APIVersion, f.kind.Kind = string(p.Bytes()), string(p.Bytes()), string(p.Bytes())
	f.raw = p.Rest()
	if err := p.Err(); err != nil {
		return nil, err
	}
	if f.condition > gone || sealed > 1 {
		return nil, fmt.Errorf("%w: condition %d, seal %d", disk.ErrMalformed, f.condition, sealed)
	}
	return f, nil
}

func objectKey(r Resource, k Key, f Form) string {
	return r.String() + "\x00" + k.encode() + "\x00" + string(rune('0'+f))
}

// splitObjectKey gives the resource and the encoded key of an object.
func splitObjectKey(key string) (resource, k string) {
	resource, k, _ = strings.Cut(key, "\x00")
	return resource, k[:max(len(k)-2, 0)]
}

// fact reads what is known of an object in a form, nil if nothing is. mu must be held.
func (s *catalog) fact(r Resource, k Key, f Form) *fact {
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
func (s *catalog) learn(r Resource, k Key, f Form, v *fact) {
	old := s.fact(r, k, f)
	if old != nil && !v.newer(old) && (!old.sealed || s.Key.Fits(old.raw)) { // one that cannot be read is no use
		return
	}
	if f.metadata() && v.condition == present {
		// The whole object in the same encoding has it, too.
		if full := s.fact(r, k, f.full()); full != nil && full.condition == present && full.epoch == v.epoch &&
			full.version >= v.version && v.version > 0 {
			return
		}
	}
	key := objectKey(r, k, f)
	s.sealFact(v, key)
	s.put(table.Objects, key, v.encode())
}

// sealFact encrypts the bytes of a fact that stands under a key, if there are any and if they can be.
func (s *catalog) sealFact(v *fact, key string) {
	if v.sealed = v.raw != nil && s.Key != nil; v.sealed {
		v.raw = s.Key.Seal(v.raw, append(v.head(), key...))
	}
}

// sealed is the payload of an object's row as it is kept where there is a key, nil if it cannot be read.
func (s *catalog) sealed(key string, payload []byte) []byte {
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
func (s *catalog) show(r Resource, f Form, kind wire.Kind, o *wire.Object) Key {
	k := Key{o.Namespace, o.Name}
	s.learn(r, k, f, &fact{condition: present, epoch: s.epoch, version: o.Version, uid: o.UID, kind: kind, raw: o.Raw})
	return k
}

// leave takes it that the cloud has said, at a version, that an object is gone, or that it left a collection. This goes
// for every form that there is of it.
func (s *catalog) leave(r Resource, k Key, what condition, version uint64) {
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
func (s *catalog) raw(r Resource, k Key, f Form, v *fact) ([]byte, error) {
	if !v.sealed {
		return v.raw, nil
	}
	return s.Key.Open(v.raw, append(v.head(), objectKey(r, k, f)...))
}

// unreadable notes that the bytes of an object are of no use. Without the key they stay: it may come back.
func (s *catalog) unreadable(r Resource, k Key, f Form, err error) {
	if !errors.Is(err, disk.ErrNoKey) {
		s.damaged(table.Objects, objectKey(r, k, f), err.Error())
	}
}

// version is the newest at which anything is known of an object.
func (s *catalog) version(r Resource, k Key) (v uint64) {
	for f := range forms {
		if x := s.fact(r, k, f); x != nil && x.epoch == s.epoch {
			v = max(v, x.version)
		}
	}
	return v
}

// best is the fact from which an object can be given in a form: in that form, or, for metadata, in the full one if that
// is newer.
func (s *catalog) best(r Resource, k Key, f Form) (Form, *fact) {
	v := s.fact(r, k, f)
	if !f.metadata() {
		return f, v
	}
	if full := s.fact(r, k, f.full()); full != nil && (v == nil || full.newer(v)) {
		return f.full(), full
	}
	return f, v
}

// incomplete reports whether members of a collection are missing, or their objects.
func (s *catalog) incomplete(c *collection) bool {
	keys, ok := s.keys(c)
	for _, k := range keys {
		if _, v := s.best(c.Resource, k, c.Form); v == nil {
			return true
		}
	}
	return !ok
}
