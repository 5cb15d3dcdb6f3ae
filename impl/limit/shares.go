package limit

import "sync"

// most is how much a key may hold of what is free then: three times as much. One that is alone takes three quarters of
// a budget. What it leaves is there for others, and as requests end, those who hold most find it full first, until all
// who want more hold the same.
const most = 3

// Shares divides a budget of bytes among keys by what is free, and not by a number for each. It is safe for concurrent
// use.
type Shares struct {
	Budget int64

	mu   sync.Mutex
	held map[string]int64
	all  int64
}

// Enter takes bytes for a key. It tells what is full if it may not: "each" or "sum"; "" means that Leave has to be
// called with the same.
func (s *Shares) Enter(key string, bytes int64) (full string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, has := s.Budget-s.all-bytes, s.held[key]+bytes
	switch {
	case free < 0:
		return "sum"
	case has > most*free:
		return "each"
	}
	if s.held == nil {
		s.held = map[string]int64{}
	}
	s.held[key] = has
	s.all += bytes
	return ""
}

// Leave gives bytes back.
func (s *Shares) Leave(key string, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] -= bytes; s.held[key] == 0 {
		delete(s.held, key)
	}
	s.all -= bytes
}

// Held is how many bytes are taken.
func (s *Shares) Held() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
