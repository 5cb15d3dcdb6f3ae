package disk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ErrMalformed says that bytes are not what they should be.
var ErrMalformed = errors.New("it is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is over all parts, in order.
func Checksum(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// PackBytes appends a string of bytes and its length.
func PackBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// Unpacker takes values from the front of bytes. Its errors stick.
type Unpacker struct {
	b   []byte
	bad bool
}

// NewUnpacker reads b, of which what PackBytes returns are parts.
func NewUnpacker(b []byte) *Unpacker { return &Unpacker{b: b} }

// End reports whether everything was there, and no more.
func (r *Unpacker) End() error {
	if r.bad || len(r.b) > 0 {
		return ErrMalformed
	}
	return nil
}

// Err reports whether everything so far was there.
func (r *Unpacker) Err() error {
	if r.bad {
		return ErrMalformed
	}
	return nil
}

// More reports whether there is anything left.
func (r *Unpacker) More() bool { return !r.bad && len(r.b) > 0 }

func (r *Unpacker) fail() { r.b, r.bad = nil, true }

// Byte reads one byte.
func (r *Unpacker) Byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	b := r.b[0]
	r.b = r.b[1:]
	return b
}

// Uvarint reads what binary.AppendUvarint wrote.
func (r *Unpacker) Uvarint() uint64 { return unpackNumber(r, binary.Uvarint) }

// Varint reads what binary.AppendVarint wrote.
func (r *Unpacker) Varint() int64 { return unpackNumber(r, binary.Varint) }

func unpackNumber[T int64 | uint64](r *Unpacker, read func([]byte) (T, int)) T {
	v, n := read(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Bytes reads what PackBytes wrote.
func (r *Unpacker) Bytes() []byte {
	n := r.Uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// Rest reads all that is left.
func (r *Unpacker) Rest() []byte {
	b := r.b
	r.b = nil
	return b
}
