package link

import "time"

const (
	// window bounds the bytes of one direction of a connection that are on their way at once, as a TCP window does.
	window = 4 << 20
	// unackedWindow bounds what one direction sends while the other, which carries its acknowledgements, is cut.
	unackedWindow = 64 << 10
)

// conditions of the link for one node and direction at one moment.
type conditions struct {
	now    time.Time
	open   bool          // not cut
	acked  bool          // the opposite direction is not cut
	since  time.Time     // open since
	delay  time.Duration // one way
	packet int           // bytes to reserve at once
}

// flow is one direction of one connection as a pure state machine: bytes wait, are sent at the wire's pace,
// travel, and are delivered. It has no clock and no lock; its toxic steps it.
type flow struct {
	wire *meter

	waiting []byte    // read, not yet sent
	came    time.Time // when waiting was first stepped with
	ended   bool      // the sender closed its end after waiting
	ticket  float64   // place on the wire of the first packet of waiting
	booked  int       // length of that packet, 0 when nothing is reserved
	unacked int       // sent since the opposite direction was cut

	travelling []packet
	inFlight   int // bytes in travelling
}

// packet is what travels: data, or the end of the stream.
type packet struct {
	data []byte
	end  bool
	due  time.Time
}

// push adds what was read from the sender. It may be called when step said hungry.
func (f *flow) push(data []byte) { f.waiting, f.came = data, time.Time{} }

// end notes that the sender closed its end.
func (f *flow) end() { f.ended = true }

// pop removes the packet that step said was due.
func (f *flow) pop() {
	f.inFlight -= len(f.travelling[0].data)
	f.travelling[0] = packet{}
	f.travelling = f.travelling[1:]
	if len(f.travelling) == 0 {
		f.travelling = nil
	}
}

// progress is the outcome of a step.
type progress struct {
	sent   int       // bytes that left the sending end in this step
	due    *packet   // to be delivered now, then popped
	wake   time.Time // when to step again at the latest; zero: when something happens
	hungry bool      // more may be read from the sender
}

// step moves everything as far as it can go under the conditions.
func (f *flow) step(c conditions) progress {
	var p progress
	if c.open {
		f.send(c, &p)
		f.arrive(c, &p)
	}
	p.hungry = len(f.waiting) == 0 && !f.ended && f.inFlight < window
	return p
}

// send puts waiting bytes on the wire, packet by packet.
func (f *flow) send(c conditions, p *progress) {
	if c.acked {
		f.unacked = 0
	}
	if f.came.IsZero() {
		f.came = c.now
	}
	for len(f.waiting) > 0 {
		if f.unacked >= unackedWindow {
			return
		}
		if f.booked == 0 {
			f.booked = min(c.packet, len(f.waiting))
			f.ticket = f.wire.reserve(c.now, f.booked)
		}
		at, ok := f.wire.sent(c.now, f.ticket)
		if !ok {
			p.wake = at
			return
		}
		f.depart(packet{data: f.waiting[:f.booked]}, at, c)
		p.sent += f.booked
		if !c.acked {
			f.unacked += f.booked
		}
		f.waiting = f.waiting[f.booked:]
		f.booked = 0
	}
	f.waiting = nil
	if f.ended && !f.endSent() {
		f.depart(packet{end: true}, c.now, c)
	}
}

// depart lets a packet travel. It left at the given time, but not while the link was cut, and not before it came: what
// an idle wire has saved up is room, not time.
func (f *flow) depart(k packet, at time.Time, c conditions) {
	for _, earliest := range []time.Time{c.since, f.came} {
		if at.Before(earliest) {
			at = earliest
		}
	}
	k.due = at.Add(c.delay)
	f.travelling = append(f.travelling, k)
	f.inFlight += len(k.data)
}

func (f *flow) endSent() bool {
	n := len(f.travelling)
	return n > 0 && f.travelling[n-1].end
}

// arrive finds the packet to deliver. Only the first counts: bytes stay in order even if the delay shrank.
func (f *flow) arrive(c conditions, p *progress) {
	if len(f.travelling) == 0 {
		return
	}
	first := &f.travelling[0]
	if !first.due.After(c.now) {
		p.due = first
		return
	}
	if p.wake.IsZero() || first.due.Before(p.wake) {
		p.wake = first.due
	}
}
