// Package pack encodes and decodes the values in the records of packages snapshot, store and store/queue. It does not
// trust its input: no input makes it panic, or use more memory than the input has bytes. It starts no goroutine.
package pack

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

// Bytes appends a string of bytes and its length.
func Bytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// Reader takes values from the front of bytes. Its errors stick.
type Reader struct {
	b   []byte
	bad bool
}

// NewReader reads b, of which what Bytes returns are parts.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// End reports whether everything was there, and no more.
func (r *Reader) End() error {
	if r.bad || len(r.b) > 0 {
		return ErrMalformed
	}
	return nil
}

// Err reports whether everything so far was there.
func (r *Reader) Err() error {
	if r.bad {
		return ErrMalformed
	}
	return nil
}

// More reports whether there is anything left.
func (r *Reader) More() bool { return !r.bad && len(r.b) > 0 }

func (r *Reader) fail() { r.b, r.bad = nil, true }

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	b := r.b[0]
	r.b = r.b[1:]
	return b
}

// Uvarint reads what binary.AppendUvarint wrote.
func (r *Reader) Uvarint() uint64 { return number(r, binary.Uvarint) }

// Varint reads what binary.AppendVarint wrote.
func (r *Reader) Varint() int64 { return number(r, binary.Varint) }

func number[T int64 | uint64](r *Reader, read func([]byte) (T, int)) T {
	v, n := read(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Bytes reads what Bytes wrote.
func (r *Reader) Bytes() []byte {
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
func (r *Reader) Rest() []byte {
	b := r.b
	r.b = nil
	return b
}
