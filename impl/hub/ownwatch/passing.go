package ownwatch

import (
	"io"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// passing is a client's watch that the cloud answers, until a stream goes on with it. next is told of each version that
// the client is shown, and of the bytes that came; it gives the stream, or has the bytes counted again from zero.
type passing struct {
	io.ReadCloser
	events  *wire.EventReader
	next    func(version uint64, brought int64) (then *reader, again bool)
	brought int64
	rest    []byte
	then    *reader // nil: there is no stream yet
}

// Read implements io.Reader.
func (p *passing) Read(b []byte) (int, error) {
	if len(p.rest) == 0 && p.then != nil {
		return p.then.Read(b)
	}
	if len(p.rest) == 0 {
		ev, err := p.events.Next()
		if err != nil {
			return 0, err
		}
		if p.rest = ev.Frame; ev.Version > 0 {
			p.shown(ev.Version)
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// shown takes that the client is about to be shown a version: a stream may go on behind that.
func (p *passing) shown(version uint64) {
	p.brought += int64(len(p.rest))
	then, again := p.next(version, p.brought)
	if p.then = then; then != nil {
		_ = p.ReadCloser.Close()
	}
	if again {
		p.brought = 0
	}
}

// Close implements io.Closer.
func (p *passing) Close() error {
	if p.then != nil {
		return p.then.Close()
	}
	return p.ReadCloser.Close()
}
