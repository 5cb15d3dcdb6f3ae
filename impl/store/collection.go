package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// collection is what is known of a shape. It lives in memory; Store.mu guards it.
type collection struct {
	Shape
	key, id string

	kind     wire.Kind // of the items
	listKind string    // of the list; "": the same with List behind it, or nobody has listed it
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
	b = disk.PackBytes(disk.PackBytes(b, c.kind.APIVersion), c.kind.Kind)
	if c.listKind != "" {
		b = disk.PackBytes(b, c.listKind)
	}
	return b
}

func parseCollection(key string, b []byte) (*collection, error) {
	s, ok := parseShape(key)
	if !ok || s.validate() != nil {
		return nil, fmt.Errorf("%w: %q names no shape", disk.ErrMalformed, key)
	}
	c := newCollection(s)
	p := disk.NewUnpacker(b)
	flags := p.Byte()
	c.complete, c.watched = flags&1 != 0, flags&2 != 0
	c.epoch, c.version = p.Uvarint(), p.Uvarint()
	count := p.Uvarint()
	c.sum = p.Uvarint()
	c.asOf, c.asked = time.Unix(p.Varint(), 0), time.Unix(p.Varint(), 0)
	c.kind = wire.Kind{APIVersion: string(p.Bytes()), Kind: string(p.Bytes())}
	if p.More() {
		c.listKind = string(p.Bytes())
	}
	if flags > 3 || count > 1<<31 {
		return nil, fmt.Errorf("%w: flags %d, %d members", disk.ErrMalformed, flags, count)
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

// recording is a list under way. Its items are in no collection yet, and are kept as if they were.
type recording struct {
	shape Shape
	keys  map[Key]bool
	left  bool // there was no room for an item: the list will not be whole
}

// recordings are the lists under way. Store.mu guards them.
type recordings map[*recording]bool

// begin notes that a list is under way, and end that it is no more.
func (all recordings) begin(shape Shape) *recording {
	r := &recording{shape: shape, keys: map[Key]bool{}}
	all[r] = true
	return r
}

func (all recordings) end(r *recording) { delete(all, r) }
