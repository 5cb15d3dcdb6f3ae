package snapshot

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// encoder writes blocks. Its errors stick: end tells.
type encoder struct {
	w   io.Writer
	pos position // behind the last block written
	err error

	buf     []byte // the block being gathered, with room for its head
	kind    byte   // of it
	batch   bool   // a batch has begun
	version uint64 // of the last change
}

func newEncoder(w io.Writer, at position) *encoder { return &encoder{w: w, pos: at} }

// start writes what a file begins with.
func (e *encoder) start() {
	b := binary.LittleEndian.AppendUint32([]byte(magic), format)
	e.write(b)
	e.pos = position{int64(len(b)), crc32.Checksum(b, castagnoli)}
}

func (e *encoder) write(b []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(b)
	}
}

// block makes buf a block of a kind.
func (e *encoder) block(kind byte) {
	if len(e.buf) > headSize && (e.kind != kind || len(e.buf) >= blockSize) {
		e.flush()
	}
	if len(e.buf) == 0 {
		e.buf = append(e.buf, make([]byte, headSize)...)
	}
	e.kind = kind
}

// flush writes the block being gathered.
func (e *encoder) flush() {
	if len(e.buf) <= headSize {
		return
	}
	e.buf[0] = e.kind
	binary.LittleEndian.PutUint32(e.buf[1:], uint32(len(e.buf)-headSize))
	e.pos.checksum = crc32.Update(crc32.Update(e.pos.checksum, castagnoli, e.buf[:5]), castagnoli, e.buf[headSize:])
	binary.LittleEndian.PutUint32(e.buf[5:], e.pos.checksum)
	e.write(e.buf)
	e.pos.offset += int64(len(e.buf))
	e.buf = e.buf[:0]
}

// end writes what is left and returns the first error.
func (e *encoder) end() error {
	e.flush()
	return e.err
}

func (e *encoder) bytes(b []byte) {
	e.buf = binary.AppendUvarint(e.buf, uint64(len(b)))
	e.buf = append(e.buf, b...)
}

func (e *encoder) head(res relay.Resource, h relay.History, version uint64, asOf time.Time, objects int) {
	e.block(blockHead)
	e.bytes([]byte(identity(res)))
	e.buf = append(e.buf, byte(res.Encoding()))
	e.buf = binary.AppendUvarint(e.buf, version)
	e.buf = binary.AppendVarint(e.buf, asOf.UnixNano())
	e.buf = binary.AppendUvarint(e.buf, uint64(objects))
	if h.Number != 0 || res.ListKind != "" {
		e.buf = binary.AppendUvarint(e.buf, h.Number)
		e.buf = binary.AppendUvarint(e.buf, h.Lost)
	}
	if res.ListKind != "" {
		e.bytes([]byte(res.ListKind))
	}
	e.version = version
}

// identity is what a relay's objects are.
func identity(res relay.Resource) string { return res.String() + "=" + res.Kind }

func (e *encoder) object(o *wire.Object) {
	e.block(blockObjects)
	e.bytes(o.Raw)
}

// change writes a change, unless it is a bookmark outside of a batch: of those the last one will do.
func (e *encoder) change(c *mvcc.Event) (written bool) {
	if c.Cur == nil && c.Batch == nil {
		return false
	}
	e.block(blockChanges)
	if b := c.Batch; b != nil && !e.batch {
		e.buf = append(e.buf, recordBatch)
		e.buf = binary.AppendUvarint(e.buf, b.From)
		e.buf = binary.AppendUvarint(e.buf, b.To)
		e.batch = true
	}
	switch {
	case c.Cur == nil:
		e.reached(c.Version)
		e.batch = false
	case c.Deleted:
		e.buf = append(e.buf, recordDelete)
		e.bytes(c.Cur.Raw)
	default:
		e.buf = append(e.buf, recordPut)
		e.bytes(c.Cur.Raw)
	}
	e.version = c.Version
	return true
}

func (e *encoder) reached(version uint64) {
	e.block(blockChanges)
	e.buf = append(e.buf, recordReached)
	e.buf = binary.AppendUvarint(e.buf, version)
	e.version = version
}

func (e *encoder) fresh(asOf time.Time) {
	e.block(blockChanges)
	e.buf = append(e.buf, recordFresh)
	e.buf = binary.AppendVarint(e.buf, asOf.UnixNano())
}

func (e *encoder) whole(objects int) {
	e.block(blockEnd)
	e.buf = binary.AppendUvarint(e.buf, uint64(objects))
}
