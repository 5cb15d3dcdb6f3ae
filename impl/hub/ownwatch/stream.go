package ownwatch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	// linger is how long a stream goes on without a client. A client that failed comes back within half a minute, and one
	// that is to be moved is shown a bookmark within a minute.
	linger = 2 * time.Minute
	// quiet is for how long a stream that is joined may have brought nothing: kube-apiserver sends a bookmark each minute.
	quiet = 3 * time.Minute
	// keeps is how many bytes of frames a stream keeps that all its clients have taken.
	keeps = 128 << 10
	// ahead is how many bytes a stream may be ahead of its slowest client.
	ahead = 1 << 20
)

// errBackwards ends a stream: behind an event of one version comes none of an earlier one.
var errBackwards = errors.New("the cloud went back to an earlier version")

// stream is one watch of the cloud, which began as a streaming list.
type stream struct {
	clock  clock.WithDelayedExecution
	place  any
	packed bool        // the cloud compresses it
	begun  bool        // by the hub
	header http.Header // of its answers to clients
	cancel context.CancelFunc

	mu      sync.Mutex
	frames  []frame         // the oldest first
	dropped int             // how many were before those
	size    int             // of them all
	taken   map[*reader]int // by the clients that are there: so many frames, of all that there ever were
	base    uint64          // a client that has seen this version is shown all that is later; 0: nobody may join
	last    uint64          // version
	heard   time.Time
	end     error         // nil: it goes on
	changed chan struct{} // closed when something has
	idle    clock.Timer   // ends it if no client comes; nil: there was always one
	retired bool          // nobody comes any more
}

// frame is a frame of a watch as it came, not compressed.
type frame struct {
	raw     []byte
	version uint64 // 0: an ERROR
}

// first lets the client that opened a stream read it from its begin.
func (s *stream) first(ctx context.Context, until time.Time) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(ctx, until, s.dropped)
}

// join lets a client that has seen a version read what is later; nil: that cannot be.
func (s *stream) join(ctx context.Context, until time.Time, version uint64) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == 0 || version < s.base || s.end != nil || s.clock.Since(s.heard) > quiet {
		return nil
	}
	r := s.add(ctx, until, s.dropped)
	r.seen = version
	return r
}

// add adds a client; mu is held.
func (s *stream) add(ctx context.Context, until time.Time, taken int) *reader {
	if s.idle != nil {
		s.idle.Stop()
	}
	r := &reader{stream: s, ctx: ctx, until: until}
	s.taken[r] = taken
	return r
}

// leave takes that a client is gone.
func (s *stream) leave(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.taken[r]; !is {
		return
	}
	delete(s.taken, r)
	s.settle()
	s.alone()
}

// retire has nobody come any more.
func (s *stream) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = true
	s.alone()
}

// alone ends a stream that has no client, at once if none can come; mu is held.
func (s *stream) alone() {
	switch {
	case len(s.taken) > 0:
	case s.retired || s.base == 0:
		s.cancel()
	default:
		s.idle = s.clock.AfterFunc(linger, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.taken) == 0 {
				s.cancel()
			}
		})
	}
}

// settle drops frames that nobody needs, and tells of what has changed; mu is held.
func (s *stream) settle() {
	for slowest := s.slowest(); len(s.frames) > 0 && s.dropped < slowest && (s.base == 0 || s.size > keeps); s.dropped++ {
		if s.base > 0 {
			s.base = max(s.base, s.frames[0].version)
		}
		s.size -= len(s.frames[0].raw)
		s.frames[0] = frame{}
		s.frames = s.frames[1:]
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// slowest is how many frames all clients have taken; mu is held.
func (s *stream) slowest() int {
	n := s.dropped + len(s.frames)
	for _, taken := range s.taken {
		n = min(n, taken)
	}
	return n
}

// run reads the frames of a watch that the cloud has answered until it ends, or ctx does. complete is told when the
// list is, of the bytes that came until then.
func (s *stream) run(ctx context.Context, body io.ReadCloser, enc wire.Encoding, complete func(int64)) error {
	came := &counted{ReadCloser: body}
	body = came
	if s.packed {
		body = answer.Unpack(body)
	}
	listed := false
	for events := wire.NewEventReader(body, enc, wire.Kind{}); ; {
		ev, err := events.Next()
		if err != nil {
			return err
		}
		if err := s.take(ctx, ev); err != nil {
			return err
		}
		if ev.InitialEnd && !listed {
			listed = true
			s.complete(ev.Version)
			complete(came.n)
		}
	}
}

// counted counts what comes of a body.
type counted struct {
	io.ReadCloser
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	return n, err
}

// take hands an event to the clients. It waits while one of them is far behind.
func (s *stream) take(ctx context.Context, ev *wire.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ev.Type == wire.Error:
		s.base = 0
	case s.base > 0 && ev.Version < s.last:
		return errBackwards
	}
	s.frames = append(s.frames, frame{ev.Frame, ev.Version})
	s.size += len(ev.Frame)
	s.last, s.heard = ev.Version, s.clock.Now()
	s.settle()
	for s.behind() > ahead {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// behind is how many bytes its slowest client has not taken; mu is held.
func (s *stream) behind() (n int) {
	for _, f := range s.frames[s.slowest()-s.dropped:] {
		n += len(f.raw)
	}
	return n
}

// complete takes that the list, which a stream begins with, is complete at a version.
func (s *stream) complete(version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = version
	s.alone()
}

// finish takes how a stream ended.
func (s *stream) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end, s.base = err, 0
	if s.idle != nil {
		s.idle.Stop()
	}
	s.settle()
}

// reader is a client's watch that is answered from a stream. It ends in order when the client's time is over, and as
// the stream does.
type reader struct {
	stream *stream
	ctx    context.Context // of the request
	until  time.Time       // zero: as long as the stream
	seen   uint64          // version up to which nothing is shown: the stream may be behind its client
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
	for _, f := range s.frames[taken-s.dropped:] {
		if taken++; f.version == 0 || f.version > r.seen {
			raw = f.raw
			break
		}
	}
	if s.taken[r] != taken {
		s.taken[r] = taken
		s.settle()
	}
	if raw != nil {
		return raw, nil, nil
	}
	return nil, s.changed, s.end
}
