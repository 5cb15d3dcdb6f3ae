package member

import "time"

// Probing is how a server is judged by probes.
type Probing struct {
	Interval time.Duration // between probes of a healthy server
	Timeout  time.Duration // of one probe
	Failures int           // in a row that make a healthy server unhealthy
	Healthy  int           // good ones in a row that make an unhealthy server healthy
	Away     time.Duration // between probes of a server that stays away, at most
	Confirm  time.Duration // between good ones of a server that was away
	Limit    time.Duration // of one probe: the time-out, of which pauses are parts; patient tests wait longer
}

// Near is the policy for a server inside the pool: probes cost nothing there.
func (p Probing) Near() Probing {
	p.Away, p.Confirm = p.Timeout/2, p.Timeout/8
	return p
}

// Health judges one server by its answers.
type Health struct {
	Known, OK bool
	Fails     int // in a row
	Goods     int // in a row
}

// Observe takes one answer. The very first one decides at once: there is nothing to hold against it.
func (s *Health) Observe(p Probing, good bool) {
	if good {
		s.Goods, s.Fails = s.Goods+1, 0
	} else {
		s.Fails, s.Goods = s.Fails+1, 0
	}
	switch {
	case !s.Known:
		s.Known, s.OK = true, good
	case s.OK && s.Fails >= p.Failures:
		s.OK = false
	case !s.OK && s.Goods >= p.Healthy:
		s.OK = true
	}
}

// Next is the time until the next probe: the interval while all is well, short while the judgement may change, and
// growing while a server stays away.
func (s *Health) Next(p Probing) time.Duration {
	switch {
	case s.OK && s.Fails == 0:
		return p.Interval
	case s.OK:
		return p.Timeout / 2
	case s.Goods > 0:
		return p.Confirm
	}
	return min(p.Away, p.Timeout/8<<min(s.Fails-1, 10))
}
