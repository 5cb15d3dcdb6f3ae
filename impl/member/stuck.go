package member

import "time"

const (
	stuckLook = time.Second     // how often a hub looks while nothing fresh comes
	stuckGap  = 5 * time.Second // a hub that did not look for so long was not running, and missed what came
)

// stuck finds a leader hub that says that what it shows is fresh, and from which nothing fresh comes: its own streams
// stand still and it does not know it, or it lies.
type stuck struct {
	patience time.Duration
	server   string
	since    time.Time // nothing fresh came; zero: something did
	looked   time.Time
	reached  uint64
}

// look reports, once, that it is so for longer than patience. What is not fresh and moves is catching up. It is to be
// asked every stuckLook while something is stale.
func (s *stuck) look(now time.Time, server string, stale bool, reached uint64) bool {
	moved := server != s.server || reached != s.reached
	asleep := now.Sub(s.looked) > stuckGap
	s.server, s.reached, s.looked = server, reached, now
	switch {
	case !stale:
		s.since = time.Time{}
	case moved, asleep, s.since.IsZero():
		s.since = now
	case now.Sub(s.since) > s.patience:
		s.since = now
		return true
	}
	return false
}
