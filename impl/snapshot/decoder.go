package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// content is what a file holds.
type content struct {
	relay *relay.Restoration // everything but its Finish is done
	asOf  time.Time
	end   position // behind the last whole block
	base  int64    // bytes that were written at once
	torn  int64    // bytes behind end
	open  bool     // it ends inside a batch, which was left out: nothing can be appended
}

// decoder reads a file of a known size.
type decoder struct {
	r     *bufio.Reader
	left  int64
	buf   []byte // content of the block being read
	relay *relay.Relay
	c     content
	count uint64 // objects announced
	got   uint64
	batch *mvcc.Batch // being read
}

// decode reads a file. No byte of it is trusted before a checksum vouched for it, and no more memory is taken than the
// file is large.
func decode(r io.Reader, size int64, rel *relay.Relay) (*content, error) {
	d := &decoder{r: bufio.NewReaderSize(r, blockSize), left: size, relay: rel}
	if err := d.start(); err != nil {
		return nil, err
	}
	kind, err := d.block()
	if err == nil && kind != blockHead {
		err = damaged("a block of kind %q where the head should be", kind)
	}
	if err == nil {
		err = d.head()
	}
	for kind != blockEnd && err == nil {
		if kind, err = d.block(); err != nil {
			break
		}
		switch kind {
		case blockObjects:
			err = d.objects()
		case blockChanges:
			err = d.changes()
		case blockEnd:
			err = d.whole()
		default:
			err = damaged("a block of kind %q", kind)
		}
	}
	if err != nil {
		return nil, err
	}
	d.c.base = d.c.end.offset
	err = d.appended()
	d.c.open = d.batch != nil
	return &d.c, err
}

// appended reads what came later. It may be torn.
func (d *decoder) appended() error {
	for d.left > 0 {
		kind, err := d.block()
		switch {
		case errors.Is(err, ErrDamaged):
			return nil
		case err == nil && kind != blockChanges:
			err = damaged("a block of kind %q among changes", kind)
		case err == nil:
			err = d.changes()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) start() error {
	b := make([]byte, startSize)
	if err := d.fill(b); err != nil {
		return err
	}
	if string(b[:len(magic)]) != magic {
		return fmt.Errorf("%w: it does not begin with %q", ErrForeign, magic)
	}
	switch v := binary.LittleEndian.Uint32(b[len(magic):]); {
	case v > format:
		return fmt.Errorf("%w: its format is %d, known is %d", ErrNewer, v, format)
	case v != format:
		return damaged("format %d", v)
	}
	d.c.end = position{int64(len(b)), crc32.Checksum(b, castagnoli)}
	return nil
}

// fill reads exactly len(b) bytes.
func (d *decoder) fill(b []byte) error {
	if int64(len(b)) > d.left {
		return damaged("it ends in the middle")
	}
	n, err := io.ReadFull(d.r, b)
	d.left -= int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it ends in the middle")
	}
	return err
}

// block reads the next block into buf. It is ErrDamaged if it is not whole.
func (d *decoder) block() (kind byte, err error) {
	d.c.torn = d.left
	var head [headSize]byte
	if err := d.fill(head[:]); err != nil {
		return 0, err
	}
	n := int64(binary.LittleEndian.Uint32(head[1:]))
	if n == 0 || n > maxContent || n > d.left {
		return 0, damaged("a block of %d bytes, %d are left", n, d.left)
	}
	if int64(cap(d.buf)) < n {
		d.buf = make([]byte, n)
	}
	d.buf = d.buf[:n]
	if err := d.fill(d.buf); err != nil {
		return 0, err
	}
	sum := crc32.Update(crc32.Update(d.c.end.checksum, castagnoli, head[:5]), castagnoli, d.buf)
	if sum != binary.LittleEndian.Uint32(head[5:]) {
		return 0, damaged("the checksum of the block at %d is wrong", d.c.end.offset)
	}
	d.c.end, d.c.torn = position{d.c.end.offset + headSize + n, sum}, 0
	return head[0], nil
}

func (d *decoder) head() error {
	p := disk.NewUnpacker(d.buf)
	res := d.relay.Resource()
	name, enc := string(p.Bytes()), p.Byte()
	version, asOf := p.Uvarint(), p.Varint()
	d.count = p.Uvarint()
	var h relay.History
	if p.More() {
		h = relay.History{Number: p.Uvarint(), Lost: p.Uvarint()}
	}
	if p.More() {
		res.ListKind = string(p.Bytes())
	}
	if err := ended(p); err != nil {
		return err
	}
	if name != identity(res) || wire.Encoding(enc) != res.Encoding() {
		return fmt.Errorf("%w but of %s in %v", ErrForeign, name, wire.Encoding(enc))
	}
	d.c.relay, d.c.asOf = d.relay.Restoration(version), time.Unix(0, asOf)
	d.c.relay.In(h)
	if res.ListKind != "" {
		d.relay.Lists(res.ListKind)
	}
	return nil
}

func (d *decoder) objects() error {
	p := disk.NewUnpacker(d.buf)
	for p.More() {
		o, err := d.object(p)
		if err == nil {
			err = d.c.relay.Add(o)
		}
		if err != nil {
			return damaged("%v", err)
		}
		d.got++
	}
	return nil
}

// object reads an object into memory of its own: a block must not stay for the sake of one object in it.
func (d *decoder) object(p *disk.Unpacker) (*wire.Object, error) {
	raw := p.Bytes()
	if err := p.Err(); err != nil {
		return nil, err
	}
	return wire.ParseObject(d.relay.Resource().Encoding(), append(make([]byte, 0, len(raw)), raw...))
}

func (d *decoder) whole() error {
	p := disk.NewUnpacker(d.buf)
	n := p.Uvarint()
	if err := ended(p); err != nil {
		return err
	}
	if n != d.count || n != d.got {
		return damaged("it should have %d objects and has %d", d.count, d.got)
	}
	return nil
}

func (d *decoder) changes() error {
	p := disk.NewUnpacker(d.buf)
	for p.More() {
		if err := d.change(p); err != nil {
			return damaged("%v", err)
		}
	}
	return ended(p)
}

func (d *decoder) change(p *disk.Unpacker) (err error) {
	c := &mvcc.Event{Batch: d.batch}
	switch record := p.Byte(); record {
	case recordPut, recordDelete:
		c.Deleted = record == recordDelete
		if c.Cur, err = d.object(p); err != nil {
			return err
		}
		c.Version = c.Cur.Version
	case recordReached:
		c.Version = p.Uvarint()
		d.batch = nil
	case recordBatch:
		if d.batch != nil {
			return fmt.Errorf("a batch inside the batch to %d", d.batch.To)
		}
		d.batch = &mvcc.Batch{From: p.Uvarint(), To: p.Uvarint()}
		return p.Err()
	case recordFresh:
		d.c.asOf = time.Unix(0, p.Varint())
		return p.Err()
	default:
		return fmt.Errorf("a record of kind %d", record)
	}
	if err := p.Err(); err != nil {
		return err
	}
	return d.c.relay.Apply(c)
}

// ended reports whether the block had all its record should, and no more.
func ended(p *disk.Unpacker) error {
	if err := p.End(); err != nil {
		return damaged("%v", err)
	}
	return nil
}
