package link

import (
	"sync"
	"time"
)

// meter is one direction of the shared wire: a token bucket told as a position.
//
// Senders reserve bytes and get a ticket, the position of their last byte on the wire. The wire's position
// advances with the rate, and stands at most burst bytes ahead of what was reserved (that is the bucket: what
// an idle wire saves up, and what makes good for timers that fire late). A ticket is sent when the position has
// reached it. Since every sender holds at most one ticket, for at most one packet, they take turns.
//
// Time is always given by the caller; a meter has no clock.
type meter struct {
	mu    sync.Mutex
	rate  float64 // bytes a second; 0 is unlimited
	burst float64
	at    time.Time // when the wire was at pos
	pos   float64
	tail  float64 // end of the last reservation
}

func newMeter(now time.Time, bits, burst int64) *meter {
	return &meter{rate: float64(bits) / 8, burst: float64(burst), at: now, pos: float64(burst)}
}

// setRate changes the rate, also for what is reserved already.
func (m *meter) setRate(now time.Time, bits int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.rate = float64(bits) / 8
}

// bits is the rate in bits per second.
func (m *meter) bits() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(m.rate * 8)
}

// reserve takes the next n bytes of the wire.
func (m *meter) reserve(now time.Time, n int) (ticket float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.tail += float64(n)
	return m.tail
}

// sent reports whether the ticket's last byte has left, and when that was or will be at the present rate.
func (m *meter) sent(now time.Time, ticket float64) (at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	if m.rate == 0 {
		return now, true
	}
	at = m.at.Add(time.Duration((ticket - m.pos) / m.rate * float64(time.Second)))
	const rounding = 1e-3 // bytes; so that a timer set for at finds the ticket sent
	return at, ticket <= m.pos+rounding
}

// packet is the number of bytes that a sender reserves at once: about two milliseconds of the wire, at least
// one TCP segment, at most what one read brings.
func (m *meter) packet() int {
	const segment, most = 1448, 32 << 10
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rate == 0 {
		return most
	}
	return max(segment, min(most, int(m.rate/500)))
}

func (m *meter) advance(now time.Time) {
	if dt := now.Sub(m.at); dt > 0 {
		m.pos += m.rate * dt.Seconds()
		m.at = now
	}
	if limit := m.tail + m.burst; m.pos > limit || m.rate == 0 {
		m.pos = limit
	}
}
