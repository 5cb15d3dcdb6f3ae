package table

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/weir-edge/weir/impl/disk"
)

// groups is into how many groups the rows are divided. Their sums have to fit, with the other rows of table about, into
// the page of the tables themselves: then they cost no page of their own.
const groups = 128

// digest says what the rows of a database are: bbolt and the sums of rows cannot tell a row of today from the same row
// of last week, as a page has it that the disk never wrote. It belongs to one transaction, which is in the page that
// makes that count.
type digest struct {
	tx   uint64
	sums [groups]uint32 // of what each row of a group adds
}

// groupOf gives the group of a row. Rows of one namespace, or of one collection, are in one group: they stand in the
// same pages, and what cannot be believed takes few groups with it.
func groupOf(t Kind, key []byte) int {
	part := key
	if t == Members {
		part = key[:min(IDSize, len(key))]
	} else if i := bytes.IndexByte(key, 0); i >= 0 {
		if j := bytes.IndexByte(key[i+1:], 0); j >= 0 {
			part = key[:i+1+j]
		}
	}
	return int(disk.Checksum([]byte{byte(t)}, part) % groups)
}

// share is what a row adds to the sum of its group: its own checksum, as it is written. So a row of which the rest is
// damaged is still counted as what it was.
func share(row []byte) uint32 {
	var b [HeadSize]byte
	copy(b[:], row)
	return binary.LittleEndian.Uint32(b[:])
}

// change takes it that a row is another; nil is none.
func (d *digest) change(t Kind, key, old, row []byte) {
	if t == About {
		return // it stands in the same page
	}
	g := groupOf(t, key)
	if old != nil {
		d.sums[g] -= share(old)
	}
	if row != nil {
		d.sums[g] += share(row)
	}
}

func (d *digest) encode() []byte {
	b := binary.AppendUvarint(nil, d.tx)
	for _, s := range d.sums {
		b = binary.LittleEndian.AppendUint32(b, s)
	}
	return b
}

func parseDigest(b []byte) (d digest, err error) {
	p := disk.NewUnpacker(b)
	d.tx = p.Uvarint()
	rest := p.Rest()
	if p.Err() != nil || len(rest) != 4*groups {
		return d, fmt.Errorf("%w: sums of %d bytes", disk.ErrMalformed, len(b))
	}
	for i := range d.sums {
		d.sums[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	return d, nil
}
