package virtual

import (
	"errors"
	"slices"
	"time"
)

// way is a direction of a link.
type way int

const (
	up   way = iota // from the one that asks to the one that serves
	down            // back
)

// state is what a link does with what is sent in one direction.
type state int

const (
	open    state = iota
	stalled       // what is sent arrives once the link is open again, as with TCP that sends again
	lossy         // what is sent is lost
)

// link joins a process that asks with one that serves. Messages of one flow arrive in order; those of two may overtake.
type link struct {
	loop           *Loop
	client, server *process
	state          [2]state
	slow           bool
	pings          time.Duration // between pings, and how long one is waited for
	waiting        [2][]func()
	streams        []*stream
	heard          time.Duration // the last sign of life that the client got
	read           int64         // what came to it over streams
}

// flow is an ordered run of messages in one direction.
type flow struct {
	last time.Duration
	cut  bool // a message was lost, so nothing comes behind it
}

func (l *link) latency() time.Duration {
	if l.slow && l.loop.one(8) {
		return l.loop.upTo(5 * time.Second)
	}
	return time.Millisecond + l.loop.upTo(20*time.Millisecond)
}

// send carries a message over.
func (l *link) send(w way, f *flow, arrive func()) {
	switch {
	case f.cut:
	case l.state[w] == lossy:
		f.cut = true
	case l.state[w] == stalled:
		l.waiting[w] = append(l.waiting[w], func() { l.send(w, f, arrive) })
	default:
		f.last = max(f.last, l.loop.Now()+l.latency())
		l.loop.After(f.last-l.loop.Now(), func() {
			if !f.cut {
				arrive()
			}
		})
	}
}

func (l *link) set(w way, s state) {
	l.state[w] = s
	waiting := l.waiting[w]
	l.waiting[w] = nil
	for _, send := range waiting {
		send()
	}
}

// reset breaks all streams, and both ends learn of it if the link is open.
func (l *link) reset(noticed bool) {
	for _, s := range slices.Clone(l.streams) {
		s.breaks(noticed && l.state[up] == open && l.state[down] == open)
	}
}

var (
	errTimeout = errors.New("no answer in time")
	errRefused = errors.New("connection refused")
	errBroken  = errors.New("connection reset")
	errQuiet   = errors.New("nothing came for too long")
)

// ask sends a request and hands the answer to done, once, or an error. serve runs at the server, perhaps after the
// client has given up.
func (l *link) ask(timeout time.Duration, serve func(), done func(error)) {
	over := false
	end := func(err error) func() {
		return l.client.in(func() {
			if err == nil {
				l.heard = l.loop.Now()
			}
			if !over {
				over = true
				done(err)
			}
		})
	}
	timedOut, ok, refused := end(errTimeout), end(nil), end(errRefused)
	l.loop.After(timeout, timedOut)
	there, back := &flow{}, &flow{}
	l.send(up, there, func() {
		if !l.server.up {
			l.send(down, back, refused)
			return
		}
		l.server.in(func() {
			serve()
			l.send(down, back, ok)
		})()
	})
}

// stream is a request that stays open: what the server sends comes to the client in order, and the other way round.
type stream struct {
	l      *link
	flows  [2]flow
	ended  [2]bool   // the end that gets what is sent this way hears nothing any more
	lives  [2]int    // of the process at that end
	broken [2]func() // told there when the stream broke or the other end closed it
}

// openStream begins a stream; serve runs at the server. broken is told at the client.
func (l *link) openStream(serve func(s *stream), broken func(error)) *stream {
	s := &stream{l: l}
	s.lives[down] = l.client.life
	s.broken[down] = l.client.in(func() { broken(errBroken) })
	l.streams = append(l.streams, s)
	refused := l.client.in(func() { broken(errRefused) })
	l.send(up, &s.flows[up], func() {
		if !l.server.up {
			l.send(down, &s.flows[down], func() { s.hear(down, refused) })
			return
		}
		s.lives[up] = l.server.life
		l.server.in(func() { serve(s) })()
	})
	s.ping(0)
	return s
}

// ping is what HTTP/2 does at the client's end: a connection on which no ping is answered is broken.
func (s *stream) ping(missed int) {
	s.l.client.after(s.l.pings, func() {
		if s.ended[down] {
			return
		}
		p := s.l.server
		lost := s.flows[up].cut || s.flows[down].cut || s.lives[up] != 0 && s.lives[up] != p.life
		switch answered := s.l.state[up] == open && s.l.state[down] == open && !p.frozen; {
		case answered && !lost:
			missed = 0
		case answered, missed > 0:
			s.breaks(false)
			s.broke(down)
			return
		default:
			missed++
		}
		s.ping(missed)
	})
}

// send carries a message to one end.
func (s *stream) send(w way, arrive func()) {
	p := s.l.server
	if w == down {
		p = s.l.client
	}
	life := s.lives[w]
	s.l.send(w, &s.flows[w], func() {
		if w == down {
			s.l.heard = s.l.loop.Now()
			s.l.read++
		}
		if p.life == life {
			s.hear(w, p.in(func() { s.hear(w, arrive) }))
		}
	})
}

func (s *stream) hear(w way, arrive func()) {
	if !s.ended[w] {
		arrive()
	}
}

// close ends the stream from the end that opened it: nothing is heard there from now on, and the other end is told.
func (s *stream) close() {
	if s.ended[down] {
		return
	}
	s.ended[down] = true
	s.send(up, func() { s.broke(up) })
	s.forget()
}

func (s *stream) broke(w way) {
	if b := s.broken[w]; b != nil && !s.ended[w] {
		s.ended[w] = true
		b()
	}
}

func (s *stream) breaks(noticed bool) {
	s.flows[up].cut, s.flows[down].cut = true, true
	s.forget()
	if !noticed {
		return
	}
	for _, w := range []way{up, down} {
		s.l.loop.After(s.l.latency(), func() { s.broke(w) })
	}
}

func (s *stream) forget() {
	if s.ended[up] && s.ended[down] || s.flows[up].cut {
		if i := slices.Index(s.l.streams, s); i >= 0 {
			s.l.streams = slices.Delete(s.l.streams, i, i+1)
		}
	}
}
