package member

import "time"

// stuck finds a leader hub that says that what it shows is fresh, and from which nothing fresh comes: its own streams
// stand still and it does not know it, or it lies.
type stuck struct {
	patience time.Duration
	server   string
	since    time.Time // nothing fresh came; zero: something did
	reached  uint64
}

// look reports, once, that it is so for longer than patience. What is not fresh and moves is catching up.
func (s *stuck) look(now time.Time, server string, stale bool, reached uint64) bool {
	moved := server != s.server || reached != s.reached
	s.server, s.reached = server, reached
	switch {
	case !stale:
		s.since = time.Time{}
	case moved, s.since.IsZero():
		s.since = now
	case now.Sub(s.since) > s.patience:
		s.since = now
		return true
	}
	return false
}
