package uplink

import (
	"sync/atomic"
	"time"
)

// silent is how long nothing at all may come from the cloud to a leader, whose connection asks with a ping after half of it.
// Probes prove that a server is away, but take three times as long; a leader makes way sooner.
const silent = 4 * time.Second

// Silence tells whether the connections of this hub's streams from the cloud are silent. It is for one goroutine,
// except doubt.
type Silence struct {
	read *atomic.Int64 // bytes

	seen  int64
	late  atomic.Bool // whether even the answer to a ping is
	since time.Time   // when seen was first seen, or the streams were wanted; zero: they are not
}

// Doubt tells whether even the answer to a ping is late.
func (s *Silence) Doubt() bool { return s.late.Load() }

// Lasts tells whether nothing has come for too long. It is to be asked several times a second. wanted: there are streams from the cloud, or
// ought to be.
func (s *Silence) Lasts(now time.Time, wanted bool) bool {
	n := s.read.Load()
	switch {
	case !wanted:
		s.since = time.Time{}
	case s.since.IsZero() || n != s.seen:
		s.since = now
	}
	s.seen = n
	s.late.Store(wanted && now.Sub(s.since) > silent*3/4)
	return wanted && now.Sub(s.since) > silent
}
