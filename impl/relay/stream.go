package relay

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// streams are the answers that are being written. The zero value has none.
type streams struct {
	mu  sync.Mutex
	all map[*Stream]struct{}
}

func (x *streams) open(client string, c clock.PassiveClock, abort func()) *Stream {
	s := &Stream{of: x, client: client, clock: c, abort: abort}
	s.place.Store(notWatching)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all == nil {
		x.all = map[*Stream]struct{}{}
	}
	x.all[s] = struct{}{}
	return s
}

func (x *streams) len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.all)
}

// stuck are those that should be ended, and why. base is the first event that the ring has.
func (x *streams) stuck(now time.Time, base uint64, limit time.Duration) map[*Stream]string {
	x.mu.Lock()
	defer x.mu.Unlock()
	stuck := map[*Stream]string{}
	for s := range x.all {
		if why := s.stuck(now, base, limit); why != "" {
			stuck[s] = why
		}
	}
	return stuck
}

// Stream is one answer that is being written to a client, so that Run can end it when the client takes nothing.
type Stream struct {
	of      *streams
	client  string
	clock   clock.PassiveClock
	place   atomic.Uint64 // watches: sequence number of the next event
	started atomic.Int64  // when the write under way began, in ns; 0: none

	mu    sync.Mutex
	abort func() // nil once it was called, or the stream is closed
}

// notWatching is the place of a stream that is no watch.
const notWatching = ^uint64(0)

// Close ends an answer.
func (s *Stream) Close() {
	s.mu.Lock()
	s.abort = nil
	s.mu.Unlock()
	s.of.mu.Lock()
	delete(s.of.all, s)
	s.of.mu.Unlock()
}

// Write calls write, which may take as long as a client likes.
func (s *Stream) Write(write func([]byte) (int, error), p []byte) error {
	s.started.Store(s.clock.Now().UnixNano())
	_, err := write(p)
	s.started.Store(0)
	return err
}

// At says which events of a watch have been read.
func (s *Stream) At(c *Cursor) { s.place.Store(c.place.Seq) }

// stuck tells why a stream should be ended, "" if it should not.
func (s *Stream) stuck(now time.Time, base uint64, limit time.Duration) string {
	began := s.started.Load()
	switch {
	case began == 0:
		return ""
	case now.Sub(time.Unix(0, began)) > limit:
		return "write timeout"
	case s.place.Load() < base:
		return "behind the ring"
	}
	return ""
}

// end makes the write under way fail.
func (s *Stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abort != nil {
		s.abort()
		s.abort = nil
	}
}
