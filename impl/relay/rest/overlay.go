package rest

import (
	"context"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Overlay shows clients another form of objects than a Source holds. All methods may be called by many, and none waits
// for a client.
type Overlay interface {
	// Show is what gets and lists have of an object.
	Show(o *wire.Object) *wire.Object
	// Ahead reports whether a watch that goes on at a version has to begin where the Source is, which is behind that.
	Ahead(version uint64) bool
	// Watch begins the overlay of one watch. version is where its client was, if Ahead was heeded; else 0.
	Watch(cur *relay.Cursor, o relay.WatchOptions, version uint64) Laid
}

// Laid is the overlay of one watch. It has one user.
type Laid interface {
	// Changed is closed when Lay has something to give that was not so when Changed was called.
	Changed() <-chan struct{}
	// Lay gives what the client is shown in the place of events, all that were read of the cursor since the last call.
	// over: the watch ends behind that, in order.
	Lay(events []relay.Event) (shown []relay.Event, over bool)
}

// overlay shows a page in the form that clients see.
func (h *Handler) overlay(p *relay.Page) {
	for i, o := range p.Items {
		p.Items[i] = h.Overlay.Show(o)
	}
}

// open begins a watch, and what is laid over it. Another relay sees what the Source holds.
func (h *Handler) open(ctx context.Context, o relay.WatchOptions) (cur *relay.Cursor, laid Laid, err error) {
	cur, err = h.Watch(ctx, o)
	if err != nil || h.Overlay == nil || o.Progress || o.Past {
		return cur, nil, err
	}
	version := uint64(0)
	if !o.Initial && h.Overlay.Ahead(o.Version) {
		from := o
		from.Version = 0
		behind, err := h.Watch(ctx, from)
		if err != nil {
			return nil, nil, err
		}
		if at, _, _ := behind.Place(); at < o.Version { // else the Source has reached it meanwhile
			cur, version = behind, o.Version
		}
	}
	return cur, h.Overlay.Watch(cur, o, version), nil
}
