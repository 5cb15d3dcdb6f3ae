package table

import (
	"encoding/binary"

	"github.com/weir-edge/weir/impl/disk"
)

// Kind is a kind of rows.
type Kind uint8

// The tables.
const (
	Objects   Kind = iota // resource, namespace, name, form → fact
	Members               // id of a shape, namespace, name → nothing
	Shapes                // shape → what is known of it
	Documents             // name → document
	About                 // of the store itself
	Kinds                 // how many there are
)

// KindNames are what the tables are called in the file.
var KindNames = [Kinds]string{"objects", "members", "shapes", "documents", "about"}

// Rows of table about. formatRow has no checksum of its own.
const (
	FreshRow  = "fresh"
	EpochRow  = "epoch"
	digestRow = "digest" // see digest
	FormatRow = "format" // of all rows
	sealedRow = "sealed" // it is there if no object was ever written in the clear
	// A format that former versions cannot read has another number. Its file stays beside theirs, see Config.mend.
	formatName = "weirstore"
	format     = formatName + "2"
)

// HeadSize is how long the checksum is with which each row begins, over its table, its key and the rest of it: bbolt
// checks nothing but its head.
const HeadSize = 4

// IDSize is how long the id of a shape is, with which the keys of its members begin.
const IDSize = 8

func checksum(t Kind, key string, payload []byte) uint32 {
	return disk.Checksum([]byte{byte(t)}, []byte(key), payload)
}

// Encode makes the row of a payload.
func Encode(t Kind, key string, payload []byte) []byte {
	b := make([]byte, HeadSize, HeadSize+len(payload))
	binary.LittleEndian.PutUint32(b, checksum(t, key, payload))
	return append(b, payload...)
}

// Decode gives the payload, which is a part of b.
func Decode(t Kind, key string, b []byte) (payload []byte, ok bool) {
	if len(b) < HeadSize || binary.LittleEndian.Uint32(b) != checksum(t, key, b[HeadSize:]) {
		return nil, false
	}
	return b[HeadSize:], true
}

// Place is where a row stands.
type Place struct {
	Kind Kind
	Key  string
}
