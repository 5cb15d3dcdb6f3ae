package store

import (
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// stream is what the etcd of another replica says, over one connection after the other. When etcd is asked for the
// stream again it says all that it has begun over the former one, ends that, and goes on over the next: messages are
// whole, and the first one over each needs none before.
type stream struct {
	logger *slog.Logger
	req    *http.Request
	ended  func() // is called when nobody reads it any more

	mu     sync.Mutex
	way    *way
	body   io.ReadCloser
	next   io.ReadCloser // nil: none
	moving chan struct{} // closed when next is known; nil: it does not move
	closed bool
}

func (s *stream) on() *way {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.way
}

// move asks for the stream over another connection.
func (s *stream) move(to *way) {
	s.mu.Lock()
	if s.closed || s.next != nil {
		s.mu.Unlock()
		return
	}
	former, moved := s.body, make(chan struct{})
	s.moving = moved
	s.mu.Unlock()
	resp, err := to.transport.RoundTrip(s.req.Clone(s.req.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(moved)
	s.moving = nil
	if err != nil {
		s.logger.Debug("a stream between replicas stays where it is", "replica", to.name, "err", err)
		return
	}
	if s.closed || resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return
	}
	s.next, s.way = resp.Body, to
	// One that is not ended over there is ended here.
	time.AfterFunc(MeshSilence, func() { _ = former.Close() })
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		body := s.body
		s.mu.Unlock()
		n, err := body.Read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if !s.goOn() {
			return 0, err
		}
	}
}

// goOn takes the next connection when one has ended. false: there is none.
func (s *stream) goOn() bool {
	s.mu.Lock()
	moving := s.moving
	s.mu.Unlock()
	if moving != nil { // the end may be heard before the answer that is the reason for it
		<-moving
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil || s.closed {
		return false
	}
	_ = s.body.Close()
	s.body, s.next = s.next, nil
	return true
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.ended()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.next != nil {
		_ = s.next.Close()
	}
	return s.body.Close()
}
