package member

import "time"

// Silent is how long nothing at all may come from the cloud to a leader, whose connection asks with a ping after half
// of it. Probes prove that a server is away, but take three times as long; a leader makes way sooner.
const Silent = 4 * time.Second

// silence notices that nothing comes over the streams from the cloud.
type silence struct {
	seen  int64
	since time.Time // when seen was first seen, or the streams were wanted; zero: they are not
}

// lasts reports whether nothing has come for too long, and whether even the answer to a ping is late. It is to be asked
// several times a second. wanted: there are streams from the cloud, or ought to be.
func (s *silence) lasts(now time.Time, read int64, wanted bool) (long, late bool) {
	switch {
	case !wanted:
		s.since = time.Time{}
	case s.since.IsZero() || read != s.seen:
		s.since = now
	}
	s.seen = read
	return wanted && now.Sub(s.since) > Silent, wanted && now.Sub(s.since) > Silent*3/4
}
