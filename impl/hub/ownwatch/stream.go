package ownwatch

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// keeps is how many bytes of frames a stream keeps that all its clients have taken.
	keeps = 64 << 10
	// ahead is how many bytes a stream may be ahead of its slowest client.
	ahead = 1 << 20
)

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
func (s *stream) first(q *question) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(q, s.dropped)
}

// join lets a client that has seen a version read what is later; nil: that cannot be.
func (s *stream) join(q *question, version uint64) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == 0 || version < s.base || s.end != nil || s.clock.Since(s.heard) > quiet {
		return nil
	}
	at := 0
	for at < len(s.frames) && s.frames[at].version <= version {
		at++
	}
	return s.add(q, s.dropped+at)
}

// add adds a client; mu is held.
func (s *stream) add(q *question, taken int) *reader {
	if s.idle != nil {
		s.idle.Stop()
	}
	r := &reader{stream: s, ctx: q.req.Context(), until: q.until}
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
