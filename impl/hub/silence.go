package hub

import (
	"sync/atomic"
	"time"
)

// silence is how long nothing at all may come from the cloud to a leader, whose connection asks with a ping after half of it.
// Probes prove that a server is away, but take three times as long; a leader makes way sooner.
const silence = 4 * time.Second

// silenceOf tells whether a leader's connections are silent. It is for one goroutine.
type silenceOf struct {
	read *atomic.Int64 // bytes

	seen  int64
	since time.Time // when seen was first seen, or the leadership began; zero: this hub does not lead
}

// lasts tells whether nothing has come for too long. It is to be asked several times a second.
func (s *silenceOf) lasts(now time.Time, leads bool) bool {
	n := s.read.Load()
	switch {
	case !leads:
		s.since = time.Time{}
	case s.since.IsZero() || n != s.seen:
		s.since = now
	}
	s.seen = n
	return leads && now.Sub(s.since) > silence
}
