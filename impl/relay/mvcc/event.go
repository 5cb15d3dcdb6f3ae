package mvcc

import (
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Event is one change, or a bookmark when Cur is nil. It is immutable but for its cached frames.
type Event struct {
	Version uint64 // that it is stamped with
	Cur     *wire.Object
	Prev    *wire.Object // nil: the object did not exist before
	Deleted bool         // Cur is the last state of what was deleted
	Batch   *Batch       // not nil: part of a list that replaced an older state
	at      time.Time

	// frame is the whole frame of this event in the encoding in which it came and with its plain type.
	frame atomic.Pointer[[]byte]
	// frames are what else was made of it; kept for recent events only.
	frames atomic.Pointer[frames]
}

// Type is what a watch that selects everything says.
func (e *Event) Type() string {
	switch {
	case e.Cur == nil:
		return wire.Bookmark
	case e.Deleted:
		return wire.Deleted
	case e.Prev == nil:
		return wire.Added
	default:
		return wire.Modified
	}
}

func (e *Event) size() int64 {
	n := int64(200)
	if e.Cur != nil {
		n += int64(len(e.Cur.Raw)) + 100
	}
	if e.Prev != nil {
		n += int64(len(e.Prev.Raw))
	}
	return n
}

// After reports whether the event comes after the state that a client at version v has seen. The deletions of a batch
// are stamped with the version that the batch starts from, and come after it all the same.
func (e *Event) After(v uint64) bool {
	return e.Version > v || e.Version == v && e.Batch != nil && e.Batch.From == v
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
	return e.shared().leaves(e.Prev, enc, e.Version)
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
	return e.shared().frame(frameKey{form, typ, left}, encode)
}
