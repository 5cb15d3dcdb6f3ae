package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// A file is
//
//	magic (8 bytes), format (uint32), then blocks: kind (1 byte), length (uint32), checksum (uint32), length bytes
//
// Integers of fixed size are little-endian, others are varints. The checksum is the CRC-32C of kind, length and
// content, begun from the checksum of the block before, and that of the first block from magic and format: so a
// checksum vouches for all that lies before it, and blocks can be neither left out, nor doubled, nor taken from another
// file.
//
//	blockHead     resource, encoding, version of the objects, when they were fresh, count of objects; number and lost
//	              version of the cloud's history, if that is not the first (relay.History)
//	blockObjects* objects: length and bytes of each
//	blockChanges* the changes that the ring held
//	blockEnd      count of objects
//	blockChanges* changes that were appended later
//
// What ends with blockEnd was written at once and made durable before the file got its name: it is whole, or the file
// is refused. What comes later may be torn by a power cut: it counts as far as it is whole.
const (
	magic      = "weirsnap"
	format     = 1
	startSize  = len(magic) + 4
	headSize   = 1 + 4 + 4
	blockSize  = 64 << 10                   // a block is ended when it has grown to this
	maxContent = wire.MaxObject + blockSize // one record more may be in it
)

const (
	blockHead    byte = 'H'
	blockObjects byte = 'O'
	blockChanges byte = 'C'
	blockEnd     byte = 'E'
)

// Records of blockChanges.
const (
	recordPut     byte = 1 // length, object
	recordDelete  byte = 2 // length, object
	recordReached byte = 3 // version
	recordBatch   byte = 4 // from, to: what follows, up to the record that reaches to, is one batch
	recordFresh   byte = 5 // when what stands before was fresh: Unix time in ns
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// position is a place between two blocks.
type position struct {
	offset   int64
	checksum uint32 // of the block before it
}

// Reasons why a file is refused, for errors.Is.
var (
	ErrDamaged = errors.New("it is damaged")
	ErrForeign = errors.New("it is no snapshot of this relay")
	ErrNewer   = errors.New("a later version of Weir wrote it")
)

func damaged(message string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(message, args...))
}
