package reverse

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// closeWithin is for what was written before Close to be sent.
const closeWithin = 5 * time.Second

// stream is a connection into a pool. It behaves as one of TCP: deadlines, CloseWrite, and what was written before
// Close is still sent. Each direction is a net.Pipe between the user of the stream and HTTP/2, so a byte that was
// written has been handed to HTTP/2, and nothing is buffered here beside its window.
type stream struct {
	ways    *Ways
	way     *way
	address string
	ctx     context.Context // of the request
	cancel  context.CancelFunc

	in, inFrom net.Conn // what is read here, and where receive writes it
	out, outTo net.Conn // what is written here, and where HTTP/2 reads it

	mu     sync.Mutex
	closed bool
	sent   bool        // all that was written has been sent, and the end
	fin    bool        // all has come, and the end
	err    error       // why it has broken
	timer  *time.Timer // of a Close that waits
}

var _ net.Conn = (*stream)(nil)

func newStream(x *Ways, w *way, address string) *stream {
	s := &stream{ways: x, way: w, address: address}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.in, s.inFrom = net.Pipe()
	s.out, s.outTo = net.Pipe()
	return s
}

// body is what HTTP/2 sends of a stream.
type body struct{ s *stream }

// Read implements io.Reader. HTTP/2 reads again once it has sent what it had.
func (b body) Read(p []byte) (int, error) {
	pace := b.s.way.link.pace
	n, err := b.s.outTo.Read(p[:pace.most(len(p))])
	b.s.ways.down.Add(uint64(n))
	if n > 0 {
		if err := pace.pass(b.s.ctx, n); err != nil {
			return 0, err
		}
	}
	if err != nil {
		b.s.allSent()
	}
	return n, err
}

// Close implements io.Closer.
func (b body) Close() error { return b.s.outTo.Close() }

func (s *stream) allSent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
	if s.closed && !s.fin {
		s.cancel()
	}
}

// receive hands on what comes until the stream is over.
func (s *stream) receive(resp *http.Response) {
	defer s.ways.leave(s.way)
	defer s.ways.slots.Leave(s.way.pool)
	err := s.copy(resp)
	s.drop()
	_ = resp.Body.Close()
	s.fail(err)
}

func (s *stream) copy(resp *http.Response) error {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	for in, buf := (&pieces{in: resp.Body}), *b; ; {
		n, err := in.Read(buf)
		if n > 0 {
			s.ways.up.Add(uint64(n))
			if _, err := s.inFrom.Write(buf[:n]); err != nil { // nobody reads any more
				select { // what was written goes first
				case <-s.ctx.Done():
				case <-s.way.link.closed:
				}
				return net.ErrClosed
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			s.ended()
			// The request lasts until the other direction has ended, too.
			if n, err := resp.Body.Read(buf); n > 0 {
				return s.broken(errMore)
			} else if err != nil && !errors.Is(err, io.EOF) {
				return s.broken(err)
			}
			return &Error{Broken, s.way.pool, s.address, "the pool's end has closed it"}
		case err != nil:
			if why := resp.Trailer.Get(endHeader); errors.Is(err, errCut) && why != "" {
				return s.broken(errors.New(why))
			}
			return s.broken(err)
		}
	}
}

// broken says why a stream has ended too early.
func (s *stream) broken(err error) error {
	if s.way.conn.Err() != nil {
		return &Error{
			Lost, s.way.pool, s.address, "the connection of its leader on node " + s.way.node + " has ended, and all it carried",
		}
	}
	return &Error{Broken, s.way.pool, s.address, err.Error()}
}

// ended notes that all has come.
func (s *stream) ended() {
	s.mu.Lock()
	s.fin = true
	s.mu.Unlock()
	_ = s.inFrom.Close()
}

// fail ends both directions.
func (s *stream) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	_ = s.inFrom.Close()
	_ = s.outTo.Close()
}

// drop ends the request at once.
func (s *stream) drop() { s.cancel() }

// abort ends it, so that the pool's end sees an error.
func (s *stream) abort() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	_ = s.in.Close()
	_ = s.outTo.Close() // HTTP/2 must not see an end
}

// why is the error of a direction that has ended.
func (s *stream) why(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		return err // a deadline
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case s.err != nil:
		return s.err
	}
	return err
}

// Read implements net.Conn.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if err == nil {
		return n, nil
	}
	s.mu.Lock()
	fin := s.fin && !s.closed
	s.mu.Unlock()
	if fin && errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, s.why(err)
}

// Write implements net.Conn.
func (s *stream) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.out.Write(p)
	if err != nil {
		err = s.why(err)
	}
	return n, err
}

// CloseWrite tells the pool's end that nothing more comes. What it says can still be read.
func (s *stream) CloseWrite() error { return s.out.Close() }

// Close implements net.Conn. What was written is still sent, within 5 s; what comes is dropped.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	_ = s.out.Close()
	_ = s.in.Close()
	if s.sent && !s.fin {
		s.cancel()
	} else if s.err == nil {
		s.timer = time.AfterFunc(closeWithin, s.cancel)
	}
	return nil
}

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return addr("pool " + s.way.pool) }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return addrOf(s.address) }

// SetDeadline implements net.Conn.
func (s *stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (s *stream) SetReadDeadline(t time.Time) error { return s.in.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (s *stream) SetWriteDeadline(t time.Time) error { return s.out.SetWriteDeadline(t) }
