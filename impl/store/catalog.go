package store

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/store/table"
)

// connectedWithin is how recently the cloud must have been reached to count as there.
const connectedWithin = time.Minute

// catalog is what is known, of collections and of objects.
type catalog struct {
	rows

	collections map[string]*collection
	byResource  map[Resource]map[string]*collection
	dirty       map[*collection]bool // what is known of them is not written
	epoch       uint64
	freshAt     time.Time // when the cloud was last reached
	freshSince  time.Time // and was not away since
	recordings  recordings
}

func newCatalog(c Config) catalog {
	return catalog{
		rows: newRows(c), collections: map[string]*collection{}, byResource: map[Resource]map[string]*collection{},
		dirty: map[*collection]bool{}, epoch: 1, recordings: recordings{},
	}
}

// collectionOf finds or makes one. mu must be held for writing.
func (s *catalog) collectionOf(sh Shape) *collection {
	if c := s.collections[sh.encode()]; c != nil {
		return c
	}
	c := newCollection(sh)
	c.epoch = s.epoch
	s.index(c)
	return c
}

func (s *catalog) index(c *collection) {
	s.collections[c.key] = c
	of := s.byResource[c.Resource]
	if of == nil {
		of = map[string]*collection{}
		s.byResource[c.Resource] = of
	}
	of[c.key] = c
}

// forget drops a collection with its members; its objects go with the next sweep. mu must be held for writing.
func (s *catalog) forget(c *collection) {
	s.scan(table.Members, c.id, func(key string, _ []byte) { s.pending.Set(table.Members, key, nil) })
	s.remove(table.Shapes, c.key)
	delete(s.collections, c.key)
	delete(s.byResource[c.Resource], c.key)
	delete(s.dirty, c)
}

// asOf tells when a collection was as it is.
func (s *catalog) asOf(c *collection) time.Time {
	if c.watches > 0 && s.freshAt.After(c.asOf) {
		return s.freshAt
	}
	return c.asOf
}

// ask notes that somebody wants a collection. That is written when it is a day later than what is written.
func (s *catalog) ask(c *collection) {
	now := s.Clock.Now()
	if now.Sub(c.asked) >= s.Forget/30 {
		s.dirty[c] = true
		c.asked = now
	}
}

// isMember and setMember read and change who belongs to a collection.
func (s *catalog) isMember(c *collection, k Key) bool {
	_, ok := s.get(table.Members, c.id+k.encode())
	return ok
}

func (s *catalog) setMember(c *collection, k Key, in bool) {
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
func (s *catalog) keys(c *collection) (keys []Key, ok bool) {
	sum := uint64(0)
	s.scan(table.Members, c.id, func(key string, _ []byte) {
		k := parseKey(key[len(c.id):])
		keys = append(keys, k)
		sum += hash(k)
	})
	return keys, len(keys) == c.count && sum == c.sum
}

// holder is the freshest complete collection of which an object is a member, nil if there is none.
func (s *catalog) holder(r Resource, k Key) (best *collection) {
	for _, c := range s.byResource[r] {
		if c.complete && (c.Namespace == "" || c.Namespace == k.Namespace) && s.better(c, best) && s.isMember(c, k) {
			best = c
		}
	}
	return best
}

// cover is the freshest complete collection that would have an object if it existed, nil if there is none.
func (s *catalog) cover(r Resource, k Key) (best *collection) {
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

func (s *catalog) better(c, than *collection) bool {
	return than == nil || s.asOf(c).After(s.asOf(than))
}

// NewHistory says that the cloud's history is another one: it was restored from a backup. What is kept stays, as all
// there is while the cloud is away, but any word of the new history counts more, whatever its version.
func (s *catalog) NewHistory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.Logger.Warn("the cloud has another history: what is kept counts until the cloud shows something newer",
		"epoch", s.epoch)
	s.put(table.About, table.EpochRow, fmt.Append(nil, s.epoch))
	s.urgent = true
}

// Fresh says that the cloud was reached at a time: what is watched is as of then.
func (s *catalog) Fresh(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Sub(s.freshAt) > connectedWithin {
		s.freshSince = at
	}
	if at.After(s.freshAt) {
		s.freshAt = at
	}
}
