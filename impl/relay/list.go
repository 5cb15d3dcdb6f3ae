package relay

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// List is a list that somebody kept, of a version of which nobody hears more. It is read as a Relay is that holds it:
// rules of versions, pages and watches are the same. It holds what a request selects, and nothing else.
type List struct {
	resource Resource
	state    view
	newer    newer
	clock    clock.WithTickerAndDelayedExecution
	streams  streams
}

// NewList takes over items.
func NewList(res Resource, version uint64, items []*wire.Object, c clock.WithTickerAndDelayedExecution) *List {
	l := &List{resource: res, newer: newer{schema: res.schema()}, clock: c}
	l.state.Version, l.state.Objects = version, mvcc.Sorted(items)
	for _, o := range items {
		l.newer.look(o)
	}
	return l
}

// Resource is what the list is of.
func (l *List) Resource() Resource { return l.resource }

// Status is that of a relay that holds the list.
func (l *List) Status() Status {
	return Status{
		Synced: true, Version: l.state.Version, Oldest: l.state.Version, Objects: l.state.Objects.Len(),
		NewerField: l.newer.field,
	}
}

// Denied is nil.
func (l *List) Denied() *apierrors.StatusError { return nil }

// Select is everything of a namespace: labels and fields have been seen to.
func (l *List) Select(namespace string, _ labels.Selector, _ fields.Selector) (Selector, error) {
	return in(namespace), nil
}

// Get gives an object, of which there is one version.
func (l *List) Get(_ context.Context, namespace, name string, _ At) (*wire.Object, error) {
	if o, ok := l.state.Objects.Get(&wire.Object{Key: keyOf(namespace, name)}); ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(l.resource.GroupResource(), name)
}

// Read gives a page.
func (l *List) Read(ctx context.Context, o PageOptions) (*Page, error) {
	if err := l.wait(ctx, o.At, o.Version); err != nil {
		return nil, err
	}
	if o.Exact && o.Version != l.state.Version {
		return nil, ErrPast
	}
	return pageOf(&l.state.View, o), nil
}

// Watch begins a watch, which is silent but for bookmarks.
func (l *List) Watch(ctx context.Context, o WatchOptions) (*Cursor, error) {
	version := uint64(0)
	if o.Wait {
		version = o.Version
	}
	if err := l.wait(ctx, o.At, version); err != nil {
		return nil, err
	}
	c := newCursor(l, l.clock, o)
	switch {
	case o.Initial:
		c.begin(l.state)
	case o.Version != 0 && o.Version < l.state.Version:
		return nil, errTooOld(o.Version, l.state.Version)
	default:
		c.after = max(o.Version, l.state.Version)
		c.sent = c.after
	}
	return c, nil
}

// wait waits in vain for a version that the list has not reached.
func (l *List) wait(ctx context.Context, at At, version uint64) error {
	if err := agree(History{}, at); err != nil || version <= l.state.Version {
		return err
	}
	timer := l.clock.NewTimer(waitAhead)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
	return errAhead(version, l.state.Version)
}

// Stream is an answer that nobody ends.
func (l *List) Stream(client string, abort func()) *Stream {
	return l.streams.open(client, l.clock, abort)
}

// Clock is that of the list.
func (l *List) Clock() clock.WithTickerAndDelayedExecution { return l.clock }

// look implements log.
func (l *List) look(dst []*mvcc.Event, _ *Cursor) sight {
	return sight{events: dst, ok: true, version: l.state.Version, reached: l.state.Version}
}

// closed implements log.
func (l *List) closed(string) {}
