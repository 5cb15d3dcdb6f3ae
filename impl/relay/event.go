package relay

import (
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Event is what a Cursor gives. Many readers share it: it must not be written to.
type Event struct {
	wire.Event
	of   *event // nil: it is this reader's alone
	left bool   // Object is what the event replaced, under its version
}

// Form names one of the ways in which an event is encoded. The zero Form is the relay's own: an object as it came.
type Form struct {
	Media string
	Shape uint8
	Beta  bool
}

// frames are what is made of one event for many readers, beside its frame in the relay's own form.
type frames struct {
	mu    sync.Mutex
	made  map[frameKey][]byte
	leave *wire.Object
}

type frameKey struct {
	form Form
	typ  string
	left bool
}

// shared are the frames of an event.
func (e *event) shared() *frames {
	f := e.frames.Load()
	if f == nil {
		f = &frames{made: map[frameKey][]byte{}}
		if !e.frames.CompareAndSwap(nil, f) {
			if now := e.frames.Load(); now != nil {
				f = now
			}
		}
	}
	return f
}

// leaves is the previous object under the version of the event, for readers whose selector it leaves.
func (e *event) leaves(enc wire.Encoding) (*wire.Object, error) {
	f := e.shared()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leave != nil {
		return f.leave, nil
	}
	o, err := e.prev.WithVersion(enc, e.version)
	if err == nil {
		f.leave = o
	}
	return o, err
}

// Shared tells whether others may be given the same event.
func (e *Event) Shared() bool { return e.of != nil }

// Frame is the frame of an event in a form. It is made once and shared, if Shared.
func (e *Event) Frame(form Form, encode func() ([]byte, error)) ([]byte, error) {
	own := e.of != nil && form == Form{} && !e.left && e.Type == e.of.typ()
	switch {
	case e.of == nil:
		return encode()
	case own:
		if f := e.of.frame.Load(); f != nil {
			return *f, nil
		}
		f, err := encode()
		if err == nil {
			e.of.frame.Store(&f)
		}
		return f, err
	}
	s := e.of.shared()
	key := frameKey{form, e.Type, e.left}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.made[key]; ok {
		return f, nil
	}
	f, err := encode()
	if err == nil {
		s.made[key] = f
	}
	return f, err
}
