package mvcc

import (
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Form names one of the ways in which an event is encoded. The zero Form is an object as it came.
type Form struct {
	Media string
	Shape uint8
	Beta  bool
}

// frames are what is made of one event for many readers, beside its frame in the form in which it came.
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
func (e *Event) shared() *frames {
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

// Leaves is the previous object under the version of the event, for readers whose selector it leaves.
func (e *Event) Leaves(enc wire.Encoding) (*wire.Object, error) {
	f := e.shared()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leave != nil {
		return f.leave, nil
	}
	o, err := e.Prev.WithVersion(enc, e.Version)
	if err == nil {
		f.leave = o
	}
	return o, err
}

// Frame is the frame of the event as a type in a form; left: of the previous object. It is made once, and shared.
func (e *Event) Frame(form Form, typ string, left bool, encode func() ([]byte, error)) ([]byte, error) {
	if (form == Form{}) && !left && typ == e.Type() {
		if f := e.frame.Load(); f != nil {
			return *f, nil
		}
		f, err := encode()
		if err == nil {
			e.frame.Store(&f)
		}
		return f, err
	}
	s := e.shared()
	key := frameKey{form, typ, left}
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
