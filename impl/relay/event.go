package relay

import (
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Event is what a Cursor gives. Many readers share it: it must not be written to.
type Event struct {
	wire.Event
	of   *mvcc.Event // nil: it is this reader's alone
	left bool        // Object is what the event replaced, under its version
}

// Shared tells whether others may be given the same event.
func (e *Event) Shared() bool { return e.of != nil }

// Frame is the frame of an event in a form. It is made once and shared, if Shared.
func (e *Event) Frame(form mvcc.Form, encode func() ([]byte, error)) ([]byte, error) {
	if e.of == nil {
		return encode()
	}
	return e.of.Frame(form, e.Type, e.left, encode)
}
