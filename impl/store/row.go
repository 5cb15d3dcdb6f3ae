package store

import (
	"encoding/binary"

	"github.com/weir-edge/weir/impl/pack"
)

// Each row begins with a checksum over its table, its key and the rest of it: bbolt checks nothing but its head.
const checksumSize = 4

// idSize is how long the id of a shape is, with which the keys of its members begin.
const idSize = 8

func checksum(t table, key string, payload []byte) uint32 {
	return pack.Checksum([]byte{byte(t)}, []byte(key), payload)
}

func encodeRow(t table, key string, payload []byte) []byte {
	b := make([]byte, checksumSize, checksumSize+len(payload))
	binary.LittleEndian.PutUint32(b, checksum(t, key, payload))
	return append(b, payload...)
}

// decodeRow gives the payload, which is a part of b.
func decodeRow(t table, key string, b []byte) (payload []byte, ok bool) {
	if len(b) < checksumSize || binary.LittleEndian.Uint32(b) != checksum(t, key, b[checksumSize:]) {
		return nil, false
	}
	return b[checksumSize:], true
}

// place is where a row stands.
type place struct {
	table table
	key   string
}
