package offline

import (
	"errors"
	"io"
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	// maxHeld bounds what a tee holds for a parser that cannot begin yet.
	maxHeld = 1 << 20
	// maxWhole bounds what it holds for one that begins at the end: no object and no document that is kept is longer.
	maxWhole = max(wire.MaxObject, maxDocument)
)

// tee is the body of an answer on its way to a client. What the client has got, a parser gets next: not before, so that
// it delays nothing, and in the client's own goroutine, so that it is never far behind.
type tee struct {
	body io.ReadCloser
	room *room
	holding

	mu      sync.Mutex
	in      *intake // of the parser
	pump    *pump   // nil: it was given up
	waiting bool    // the pump cannot begin yet
	whole   bool    // the pump begins at the end
	held    []byte  // read by the client, not parsed
	end     error   // how the body ended; nil: it has not
	done    func()  // called once at the end
}

// newWholeTee returns a tee whose parser begins when the client has all.
func newWholeTee(room *room, body io.ReadCloser, parse func(io.Reader, *intake)) *tee {
	t := &tee{room: room, body: body, in: &intake{}, whole: true, done: func() {}}
	t.evict = t.abandon
	t.pump = newWhole(func(body io.Reader) { parse(body, t.in) })
	return t
}

// newTee returns a tee; if waiting is set, its parser begins with begin.
func newTee(room *room, body io.ReadCloser, waiting bool, parse func(io.Reader, *intake), done func()) *tee {
	t := &tee{room: room, body: body, in: &intake{}, waiting: waiting, done: done}
	t.evict = t.abandon
	t.pump = newPump(func(body io.Reader) { parse(body, t.in) })
	return t
}

// Read is only called when the client has taken what was read before.
func (t *tee) Read(p []byte) (int, error) {
	t.mu.Lock()
	t.drain()
	t.mu.Unlock()
	n, err := t.body.Read(p)
	for _, other := range t.take(p[:n], err) {
		other.evict()
	}
	return n, err
}

// take holds what was read for the parser. It returns recordings that have to be given up for it.
func (t *tee) take(read []byte, end error) (tooMany []*holding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end != nil {
		t.end = end
	}
	if t.pump == nil {
		return nil
	}
	t.held = append(t.held, read...)
	holds := len(t.held)
	if !t.pump.over {
		holds += t.in.holds
	}
	return t.room.hold(&t.holding, holds)
}

// drain lets the parser have what is held; mu is held.
func (t *tee) drain() {
	switch {
	case t.pump == nil || len(t.held) == 0:
		return
	case t.whole:
		if len(t.held) > maxWhole {
			t.finish()
		}
	case !t.waiting:
		t.pump.feed(t.held)
		t.held = t.held[:0]
		if t.pump.over || cap(t.held) <= 4<<10 { // an idle watch holds nothing
			t.held = nil
		}
	case len(t.held) > maxHeld:
		t.giveUp()
	}
}

// begin ends the waiting, if it is not too late: open makes what the parser writes to, and done ends it.
func (t *tee) begin(open func() error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.pump == nil: // the client has left
	case open() != nil:
		t.giveUp()
	default:
		t.waiting = false
		t.drain()
	}
}

// abandon ends the recording; the client notices nothing.
func (t *tee) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveUp()
}

func (t *tee) giveUp() {
	if t.pump != nil {
		t.pump.stop()
		t.over()
	}
}

// over ends the recording; mu is held.
func (t *tee) over() {
	t.pump, t.held = nil, nil
	t.room.leave(&t.holding)
	t.done()
}

// Close lets the parser see the end.
func (t *tee) Close() error {
	err := t.body.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pump == nil {
		return err
	}
	if t.waiting {
		t.giveUp()
		return err
	}
	t.drain()
	t.finish()
	return err
}

// finish lets the parser see how the body ended, if it has not seen that; mu is held.
func (t *tee) finish() {
	if t.pump == nil {
		return
	}
	end := t.end
	if end == nil || !errors.Is(end, io.EOF) { // the client left, or the stream broke
		end = io.ErrUnexpectedEOF
	}
	if t.whole {
		t.pump.given = t.held
	}
	t.pump.finish(end)
	t.over()
}
