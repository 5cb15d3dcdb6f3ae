package queue

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/disk"
)

// Kinds of records.
const (
	recordPut  byte = 'P' // a write
	recordSent byte = 'S' // what the entry seq is now is about to be sent, in place of a version
	recordDone byte = 'D' // the entry seq needs no more pushing
	recordKeep byte = 'K' // a whole entry, in a file that was rewritten
)

// record is a change of the queue.
type record struct {
	kind byte
	seq  uint64
	// recordPut, recordKeep: whether a base follows. recordSent: whether the cloud has what was sent before. recordDone:
	// whether it has what the entry was.
	flag   bool
	entry  Entry // recordPut: Target, At, Base, Ours. recordKeep: all
	sentAt string
}

func (r *record) encode() []byte {
	dst := []byte{r.kind}
	dst = binary.AppendUvarint(dst, r.seq)
	flag := byte(0)
	if r.flag {
		flag = 1
	}
	dst = append(dst, flag)
	switch r.kind {
	case recordSent:
		dst = disk.PackBytes(dst, r.sentAt)
	case recordPut, recordKeep:
		e := &r.entry
		dst = append(dst, byte(e.Kind))
		for _, s := range []string{e.Namespace, e.Name, e.UID} {
			dst = disk.PackBytes(dst, s)
		}
		dst = binary.AppendVarint(dst, e.At.UnixNano())
		dst = disk.PackBytes(dst, e.Ours)
		if r.flag {
			dst = disk.PackBytes(dst, e.Base)
		}
		if r.kind == recordKeep && e.sent() {
			dst = binary.AppendUvarint(dst, e.sentSeq)
			dst = disk.PackBytes(dst, e.SentAt)
			dst = disk.PackBytes(dst, e.Sent)
		}
	}
	return dst
}

// parseRecord reads what encode wrote. Bytes of the record are parts of b.
func parseRecord(b []byte) (*record, error) {
	p := disk.NewUnpacker(b)
	r := &record{kind: p.Byte(), seq: p.Uvarint()}
	switch flag := p.Byte(); {
	case flag > 1:
		return nil, fmt.Errorf("%w: a flag of %d", disk.ErrMalformed, flag)
	default:
		r.flag = flag == 1
	}
	switch r.kind {
	case recordDone:
	case recordSent:
		r.sentAt = string(p.Bytes())
	case recordPut, recordKeep:
		e := &r.entry
		e.Seq, e.Kind = r.seq, Kind(p.Byte())
		e.Namespace, e.Name, e.UID = string(p.Bytes()), string(p.Bytes()), string(p.Bytes())
		e.At = time.Unix(0, p.Varint())
		e.Ours = p.Bytes()
		if r.flag {
			e.Base = p.Bytes()
		}
		if r.kind == recordKeep && p.More() {
			e.sentSeq = p.Uvarint()
			e.SentAt, e.Sent = string(p.Bytes()), p.Bytes()
		}
		if err := p.Err(); err != nil {
			return nil, err
		}
		if err := e.validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", disk.ErrMalformed, err)
		}
	default:
		return nil, fmt.Errorf("%w: a record of kind %q", disk.ErrMalformed, r.kind)
	}
	return r, p.End()
}
