package offline

import (
	"bufio"
	"errors"
	"io"
	"iter"
)

// errLeft ends a parser that nobody feeds any more.
var errLeft = errors.New("the stream was left")

// pump feeds a parser that reads from an io.Reader with bytes that somebody else reads. It is a coroutine, not a
// goroutine: the parser runs while it is fed, and holds no memory of its own between two events but its stack.
type pump struct {
	given  []byte // and not consumed
	end    error  // what follows; nil: more may come
	resume func() (struct{}, bool)
	stop   func()
	over   bool
}

// newPump returns a pump that has not begun. parse must return soon after its reader fails.
func newPump(parse func(io.Reader)) *pump {
	p := &pump{}
	p.resume, p.stop = iter.Pull(func(yield func(struct{}) bool) { parse(&spout{p, yield}) })
	return p
}

// newWhole returns one for a parser that begins when it has all: for that it needs no coroutine, whose stack costs a
// small answer more than to parse it.
func newWhole(parse func(io.Reader)) *pump {
	p := &pump{}
	p.resume = func() (struct{}, bool) { parse(&spout{p: p}); return struct{}{}, false }
	p.stop = func() {
		if !p.over {
			p.over, p.end = true, errLeft
			parse(&spout{p: p})
		}
	}
	return p
}

// feed lets the parser consume b.
func (p *pump) feed(b []byte) {
	if p.over || len(b) == 0 {
		return
	}
	p.given = b
	_, more := p.resume()
	p.given, p.over = nil, !more
}

// finish lets the parser see how the stream ended.
func (p *pump) finish(end error) {
	p.end = end
	if !p.over {
		p.resume()
		p.over = true
	}
	p.stop()
}

// spout is the parser's end of a pump. Being an io.ByteReader, it spares parsers a buffer of their own.
type spout struct {
	p     *pump
	yield func(struct{}) bool
}

func (s *spout) wait() error {
	for len(s.p.given) == 0 {
		if s.p.end != nil {
			return s.p.end
		}
		if !s.yield(struct{}{}) {
			return errLeft
		}
	}
	return nil
}

func (s *spout) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if err := s.wait(); err != nil {
		return 0, err
	}
	n := copy(b, s.p.given)
	s.p.given = s.p.given[n:]
	return n, nil
}

func (s *spout) ReadByte() (byte, error) {
	if err := s.wait(); err != nil {
		return 0, err
	}
	b := s.p.given[0]
	s.p.given = s.p.given[1:]
	return b, nil
}

// intake is what a parser reads from. It counts what the parser may hold: all that it has read since it last let go.
type intake struct {
	from interface {
		io.Reader
		io.ByteReader
	}
	holds int
}

// open makes an intake read from a body.
func (in *intake) open(body io.Reader) {
	if s, ok := body.(*spout); ok {
		in.from = s
		return
	}
	in.from = bufio.NewReader(body)
}

// letGo says that an object is complete.
func (in *intake) letGo() { in.holds = 0 }

// Read implements io.Reader.
func (in *intake) Read(p []byte) (int, error) {
	n, err := in.from.Read(p)
	in.holds += n
	return n, err
}

// ReadByte implements io.ByteReader, which spares parsers a buffer of their own.
func (in *intake) ReadByte() (byte, error) {
	b, err := in.from.ReadByte()
	if err == nil {
		in.holds++
	}
	return b, err
}
