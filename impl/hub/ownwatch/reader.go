package ownwatch

import (
	"context"
	"io"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// reader is a client's watch that is answered from a stream. It ends in order when the client's time is over, and as
// the stream does.
type reader struct {
	stream *stream
	ctx    context.Context // of the request
	until  time.Time       // zero: as long as the stream
	rest   []byte          // of a frame
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		raw, err := r.next()
		if err != nil {
			return 0, err
		}
		r.rest = raw
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.stream.leave(r)
	return nil
}

// next waits for a frame.
func (r *reader) next() ([]byte, error) {
	s := r.stream
	var late <-chan time.Time
	if !r.until.IsZero() {
		left := r.until.Sub(s.clock.Now())
		if left <= 0 {
			return nil, io.EOF
		}
		t := s.clock.NewTimer(left)
		defer t.Stop()
		late = t.C()
	}
	for {
		raw, changed, err := s.frameOf(r)
		if raw != nil || err != nil {
			return raw, err
		}
		select {
		case <-changed:
		case <-late:
			return nil, io.EOF
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		}
	}
}

// frameOf is the next frame for a client, which takes it; else what tells when there may be one, or how the stream
// ended.
func (s *stream) frameOf(r *reader) (raw []byte, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, is := s.taken[r]
	if !is {
		return nil, nil, io.ErrClosedPipe
	}
	if at := taken - s.dropped; at < len(s.frames) {
		raw = s.frames[at].raw
		s.taken[r]++
		s.settle()
		return raw, nil, nil
	}
	return nil, s.changed, s.end
}

// passing is a client's watch that the cloud answers, until a stream goes on with it.
type passing struct {
	io.ReadCloser
	watches *Watches
	of      *question
	events  *wire.EventReader
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

// shown takes that the client is about to be shown a version, in so many bytes: a stream may go on behind that.
func (p *passing) shown(version uint64) {
	w := p.watches
	p.brought += int64(len(p.rest))
	s := w.streamOf(p.of.key)
	if s == nil {
		if w.begin(p.of, wire.FormatVersion(version), p.brought) {
			p.brought = 0
		}
		return
	}
	if p.then = s.join(p.of, version); p.then != nil {
		w.counted(p.of, "moved")
		_ = p.ReadCloser.Close()
	}
}

// Close implements io.Closer.
func (p *passing) Close() error {
	if p.then != nil {
		return p.then.Close()
	}
	return p.ReadCloser.Close()
}
