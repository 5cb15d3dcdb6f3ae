package store

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-edge/weir/impl/pack"
	"github.com/weir-edge/weir/impl/relay/wire"
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

// newer tells whether f says more than old. Between a fact and one at the same version, that an object is gone counts most:
// its deletion had that version. Without versions the later word counts.
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
		b = pack.Bytes(b, s)
	}
	return b
}

func (f *fact) encode() []byte { return append(f.head(), f.raw...) }

// parseFact reads what encode wrote; raw is a part of b.
func parseFact(b []byte) (*fact, error) {
	p := pack.NewReader(b)
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
		return nil, fmt.Errorf("%w: condition %d, seal %d", pack.ErrMalformed, f.condition, sealed)
	}
	return f, nil
}
