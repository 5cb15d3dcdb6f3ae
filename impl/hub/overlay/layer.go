package overlay

import (
	"iter"

	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// Over is what is laid over a relay; nil: nothing ever is.
func (o *Overlay) Over(r *relay.Relay) rest.Overlay {
	if o == nil {
		return nil
	}
	if s := o.shown[r.Resource().String()]; s != nil && r.Resource().Encoding() == wire.Protobuf {
		return layer{o, s.view, func() uint64 { return r.Status().Version }, r.Objects, ""}
	}
	return nil
}

// Shown walks over the objects of a relay as clients see them.
func (o *Overlay) Shown(r *relay.Relay) iter.Seq[*wire.Object] {
	over := o.Over(r)
	if over == nil {
		return r.Objects()
	}
	return func(yield func(*wire.Object) bool) {
		for x := range r.Objects() {
			if !yield(over.Show(x)) {
				return
			}
		}
	}
}

// layer is what clients read of one relay, or of what the store has.
type layer struct {
	*Overlay
	view    *moved.View
	version func() uint64
	objects func() iter.Seq[*wire.Object] // as the cloud has them
	stored  string                        // the resource, if it is the store that has them
}

// Show implements rest.Overlay.
func (l layer) Show(x *wire.Object) *wire.Object {
	if !l.laying.Load() {
		return x
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.keep()
	return l.view.Show(x)
}

// Ahead implements rest.Overlay.
func (l layer) Ahead(version uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lies() && version > l.version()
}

// lies reports whether a client that comes back has something to be shown. mu is held.
func (l layer) lies() bool { return l.laying.Load() || l.view.Owes() }

// Watch implements rest.Overlay.
func (l layer) Watch(cur *relay.Cursor, o relay.WatchOptions, version uint64) rest.Laid {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.keep()
	w := &laid{layer: l, cur: cur, options: o}
	switch at, initial, _ := cur.Place(); {
	case !l.lies():
	case o.Initial && initial:
		w.watch().Begin(at)
	case o.Initial || version == 0 && at > l.version(): // see laid.join
	default:
		w.first = w.watch().Resume(max(version, at), at, l.objects())
	}
	return w
}

// laid is what is laid over one watch.
type laid struct {
	layer
	cur     *relay.Cursor
	options relay.WatchOptions
	now     *moved.Watch // nil: the client sees what the relay has
	first   []wire.Event // to be shown before all else
	number  uint64       // of the set that the client sees
}

// watch begins.
func (w *laid) watch() *moved.Watch {
	w.now, w.number = moved.NewWatch(w.view, w.options.Selector.Matches, w.options.Bookmarks), w.Overlay.number
	return w.now
}

// Changed implements rest.Laid.
func (w *laid) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Lay implements rest.Laid.
func (w *laid) Lay(events []relay.Event) (shown []relay.Event, over bool) {
	if w.now == nil && !w.laying.Load() {
		return events, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.keep()
	if w.now == nil {
		return w.join(events)
	}
	out := w.first
	if w.first = nil; w.number != w.Overlay.number {
		if w.stored != "" && w.freed {
			return nil, true
		}
		w.number = w.Overlay.number
		out = append(out, w.now.Changed(w.objects())...)
	}
	for i := range events {
		out = append(out, w.now.Step(events[i].Event)...)
	}
	if _, initial, _ := w.cur.Place(); !initial {
		w.now.End()
	}
	if !w.laying.Load() && w.now.Plain() {
		w.now = nil
	}
	return wrapped(out), false
}

// join is for a watch that began before anything was corrected. Its client is shown that when it has all else. One that
// is ahead of the relay comes again, and is then shown what the relay hears of what is corrected.
func (w *laid) join(events []relay.Event) (shown []relay.Event, over bool) {
	at, initial, ahead := w.cur.Place()
	switch {
	case len(events) > 0 || initial:
		return events, false
	case ahead:
		return nil, true
	}
	return wrapped(w.watch().Resume(at, at, w.objects())), false
}

func wrapped(all []wire.Event) []relay.Event {
	out := make([]relay.Event, len(all))
	for i := range all {
		out[i].Event = all[i]
	}
	return out
}
