package notice

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// settles is how long after a watch began it is known that the cloud has no text.
const settles = 10 * time.Second

// Shown is what the cloud shows of a text. It is safe for concurrent use.
type Shown struct {
	mu    sync.Mutex
	since time.Time // when the watch began that is open; zero: none is
	text  []byte
}

// Settled is the text that the cloud shows; none: it has none. known is false while that is not known.
func (s *Shown) Settled(now time.Time) (text []byte, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text, !s.since.IsZero() && now.Sub(s.since) >= settles
}

func (s *Shown) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.text = now, nil
}

// By lets a Source tell when its watch begins and ends, and that the text is gone. Who takes the text says so by Set.
func (s *Shown) By(c clock.PassiveClock, from Source) Source {
	from.Open = func(open bool) {
		if open {
			s.begin(c.Now())
			return
		}
		s.begin(time.Time{})
	}
	from.Gone = func() { s.Set(nil) }
	return from
}

// Set notes the text that the cloud shows.
func (s *Shown) Set(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
}
