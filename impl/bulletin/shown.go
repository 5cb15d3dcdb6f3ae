package bulletin

import (
	"sync"
	"time"
)

const (
	// settles is how long after a watch began it is known that the cloud has no text, or no other.
	settles = 10 * time.Second
	// lasts is for how long a confirmation stands. A member hears of one in ten seconds, and it is half a minute old then.
	lasts = time.Minute
	// restsAfter is how long a watch is open before a confirmation ends it: what it begins with has come by then.
	restsAfter = 30 * time.Second
)

// shown is what the cloud shows of a text. It is safe for concurrent use.
type shown struct {
	mu      sync.Mutex
	opened  time.Time // when the watch began that is open; zero: none is
	closed  time.Time // when the last one ended; zero: none has
	version string    // of the object, behind which a watch goes on; "": it begins again
	text    []byte
	again   func() // ends the watch
	// confirmed is after when it is known that the cloud showed what is held here, see Board.Confirm.
	confirmed time.Time
}

// follow notes how the watch is ended that begins now.
func (s *shown) follow(again func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = again
}

// end says that nothing is watched any more.
func (s *shown) end() { s.follow(nil) }

// again ends the watch, and the next one begins with the object.
func (s *shown) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version, s.confirmed = "", (time.Time{}); s.again != nil {
		s.again()
	}
}

func (s *shown) since() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *shown) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = ""
}

// begin notes that a watch is open. whole: it begins with the object.
func (s *shown) begin(now time.Time, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened = now; whole {
		s.text = nil
	}
}

// pause notes that it ended.
func (s *shown) pause(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened, s.closed = time.Time{}, now()
}

// set notes the text that the cloud shows, of an object of a version.
func (s *shown) set(version string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.text = version, text
}

func (s *shown) now() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// settled is the text that the cloud shows; none: it has none. known is false while that is not known.
func (s *shown) settled(now time.Time) (text []byte, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text, !s.opened.IsZero() && now.Sub(s.opened) >= settles
}

func (s *shown) age(now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.closed
	if s.confirmed.After(last) {
		last = s.confirmed
	}
	switch {
	case !s.opened.IsZero():
		return 0, true
	case last.IsZero():
		return 0, false
	}
	return max(now.Sub(last), 0), true
}

// confirm notes that the cloud showed after a time what is held here.
func (s *shown) confirm(after, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after.After(s.confirmed) {
		s.confirmed = after
	}
	if s.again != nil && !s.opened.IsZero() && now.Sub(s.opened) >= restsAfter && now.Sub(s.confirmed) < lasts {
		s.again()
	}
}

// stands reports whether a confirmation stands.
func (s *shown) stands(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.confirmed.IsZero() && now.Sub(s.confirmed) < lasts
}

// rests reports whether a confirmation stands, and no watch is open.
func (s *shown) rests(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.confirmed.IsZero() && now.Sub(s.confirmed) < lasts && s.opened.IsZero()
}
