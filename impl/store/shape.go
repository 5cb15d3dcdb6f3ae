package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/pack"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/table"
)

// collection is what is known of a shape. It lives in memory; Store.mu guards it.
type collection struct {
	Shape
	key, id string

	kind     wire.Kind // of the items
	epoch    uint64
	version  uint64    // reached
	complete bool      // a whole list was recorded, and every event since
	asOf     time.Time // when that was so, unless it is being watched
	asked    time.Time
	count    int    // members
	sum      uint64 // of hashes of their keys, to find out when a member is missing
	watches  int    // open
	watched  bool   // was, when the row was written
}

func newCollection(s Shape) *collection {
	return &collection{Shape: s, key: s.encode(), id: s.id()}
}

func (c *collection) String() string {
	s := fmt.Sprintf("%v of %s", c.Resource, c.Component)
	if c.Namespace != "" {
		s += " in " + c.Namespace
	}
	if sel := strings.Trim(c.Labels+" "+c.Fields, " "); sel != "" {
		s += " (" + sel + ")"
	}
	return s
}

func (c *collection) encode() []byte {
	flags := byte(0)
	if c.complete {
		flags |= 1
	}
	if c.watches > 0 {
		flags |= 2
	}
	b := []byte{flags}
	for _, v := range []uint64{c.epoch, c.version, uint64(c.count), c.sum} {
		b = binary.AppendUvarint(b, v)
	}
	for _, t := range []time.Time{c.asOf, c.asked} {
		b = binary.AppendVarint(b, t.Unix())
	}
	b = pack.Bytes(b, c.kind.APIVersion)
	return pack.Bytes(b, c.kind.Kind)
}

func parseCollection(key string, b []byte) (*collection, error) {
	s, ok := parseShape(key)
	if !ok || s.validate() != nil {
		return nil, fmt.Errorf("%w: %q names no shape", pack.ErrMalformed, key)
	}
	c := newCollection(s)
	p := pack.NewReader(b)
	flags := p.Byte()
	c.complete, c.watched = flags&1 != 0, flags&2 != 0
	c.epoch, c.version = p.Uvarint(), p.Uvarint()
	count := p.Uvarint()
	c.sum = p.Uvarint()
	c.asOf, c.asked = time.Unix(p.Varint(), 0), time.Unix(p.Varint(), 0)
	c.kind = wire.Kind{APIVersion: string(p.Bytes()), Kind: string(p.Bytes())}
	if flags > 3 || count > 1<<31 {
		return nil, fmt.Errorf("%w: flags %d, %d members", pack.ErrMalformed, flags, count)
	}
	c.count = int(count)
	return c, p.End()
}

// hash is what a key adds to the sum of its collection.
func hash(k Key) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(k.encode()))
	return h.Sum64()
}

func parseKey(s string) Key {
	namespace, name, _ := strings.Cut(s, "\x00")
	return Key{namespace, name}
}

// collectionOf finds or makes one. mu must be held for writing.
func (s *Store) collectionOf(sh Shape) *collection {
	if c := s.collections[sh.encode()]; c != nil {
		return c
	}
	c := newCollection(sh)
	c.epoch = s.epoch
	s.index(c)
	return c
}

func (s *Store) index(c *collection) {
	s.collections[c.key] = c
	of := s.byResource[c.Resource]
	if of == nil {
		of = map[string]*collection{}
		s.byResource[c.Resource] = of
	}
	of[c.key] = c
}

// forget drops a collection with its members; its objects go with the next sweep. mu must be held for writing.
func (s *Store) forget(c *collection) {
	s.scan(table.Members, c.id, func(key string, _ []byte) { s.pending.Set(table.Members, key, nil) })
	s.remove(table.Shapes, c.key)
	delete(s.collections, c.key)
	delete(s.byResource[c.Resource], c.key)
	delete(s.dirty, c)
}

// asOf tells when a collection was as it is.
func (s *Store) asOf(c *collection) time.Time {
	if c.watches > 0 && s.freshAt.After(c.asOf) {
		return s.freshAt
	}
	return c.asOf
}

// ask notes that somebody wants a collection. That is written when it is a day later than what is written.
func (s *Store) ask(c *collection) {
	now := s.Clock.Now()
	if now.Sub(c.asked) >= s.Forget/30 {
		s.dirty[c] = true
		c.asked = now
	}
}

// isMember and setMember read and change who belongs to a collection.
func (s *Store) isMember(c *collection, k Key) bool {
	_, ok := s.get(table.Members, c.id+k.encode())
	return ok
}

func (s *Store) setMember(c *collection, k Key, in bool) {
	if s.isMember(c, k) == in {
		return
	}
	if in {
		s.put(table.Members, c.id+k.encode(), nil)
		c.count++
		c.sum += hash(k)
	} else {
		s.remove(table.Members, c.id+k.encode())
		c.count--
		c.sum -= hash(k)
	}
	s.dirty[c], s.urgent = true, true
}

// keys gives the members of a collection; ok is false if they are not those that were recorded.
func (s *Store) keys(c *collection) (keys []Key, ok bool) {
	sum := uint64(0)
	s.scan(table.Members, c.id, func(key string, _ []byte) {
		k := parseKey(key[len(c.id):])
		keys = append(keys, k)
		sum += hash(k)
	})
	return keys, len(keys) == c.count && sum == c.sum
}
