package reverse

import (
	"encoding/binary"
	"errors"
	"io"
)

// What comes out of a pool is in pieces: two bytes with the length, high byte first, and so many bytes. The length 0 is
// the end of what comes, as FIN is of TCP. A body that ends without it has been cut off.
const (
	pieceHead = 2
	pieceMax  = 16<<10 - pieceHead // so that one piece is one frame of HTTP/2
)

var (
	errCut  = errors.New("it ends in the middle")
	errMore = errors.New("it sends more than its end")
	errSize = errors.New("a piece is too long")
)

// putHead writes the head of a piece of n bytes.
func putHead(b []byte, n int) { binary.BigEndian.PutUint16(b, uint16(n)) }

// pieces reads what the pieces of a body hold. Its EOF is the piece of length 0; a body that has ended before is
// errCut.
type pieces struct {
	in   io.Reader
	left int // of the piece that is read
	end  bool
}

// Read implements io.Reader.
func (p *pieces) Read(b []byte) (int, error) {
	if p.end {
		return 0, io.EOF
	}
	if p.left == 0 {
		var head [pieceHead]byte
		if _, err := io.ReadFull(p.in, head[:]); err != nil {
			return 0, cut(err)
		}
		switch p.left = int(binary.BigEndian.Uint16(head[:])); {
		case p.left == 0:
			p.end = true
			return 0, io.EOF
		case p.left > pieceMax:
			return 0, errSize
		}
	}
	n, err := p.in.Read(b[:min(len(b), p.left)])
	p.left -= n
	if n > 0 { // an error comes again
		return n, nil
	}
	return 0, cut(err)
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}
