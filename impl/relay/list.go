package relay

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/google/btree"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// List is a list that somebody kept, of a version of which nobody hears more. It is read as a Relay is that holds it: rules of versions, pages and
// watches are the same. It holds what a request selects, and nothing else.
type List struct {
	resource Resource
	state    view
	newer    string // path of a field that the compiled type does not know, "" if there is none
	clock    clock.WithTickerAndDelayedExecution
	streams  streams
}

// NewList takes over items.
func NewList(res Resource, version uint64, items []*wire.Object, c clock.WithTickerAndDelayedExecution) *List {
	slices.SortFunc(items, func(a, b *wire.Object) int { return cmp.Compare(a.Key, b.Key) })
	l := &List{resource: res, state: view{version: version, tree: ordered(items)}, clock: c}
	if schema := res.schema(); schema != nil {
		for i := 0; i < len(items) && l.newer == ""; i++ {
			l.newer = schema.Unknown(items[i].Raw)
		}
	}
	return l
}

// Resource is what the list is of.
func (l *List) Resource() Resource { return l.resource }

// Status is that of a relay that holds the list.
func (l *List) Status() Status {
	return Status{Synced: true, Version: l.state.version, Oldest: l.state.version, Objects: l.state.tree.Len(), NewerField: l.newer}
}

// Denied is nil.
func (l *List) Denied() *apierrors.StatusError { return nil }

// Select is everything of a namespace: labels and fields have been seen to.
func (l *List) Select(namespace string, _ labels.Selector, _ fields.Selector) (s Selector, err error) {
	if namespace != "" {
		s.prefix = namespace + "/"
	}
	return s, nil
}

// Get gives an object, of which there is one version.
func (l *List) Get(_ context.Context, namespace, name string, _ At) (*wire.Object, error) {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	if o, ok := l.state.tree.Get(&wire.Object{Key: key}); ok {
		return o, nil
	}
	return nil, apierrors.NewNotFound(l.resource.GroupResource(), name)
}

// Read gives a page.
func (l *List) Read(ctx context.Context, o PageOptions) (*Page, error) {
	if err := l.wait(ctx, o.At, o.Version); err != nil {
		return nil, err
	}
	if o.Exact && o.Version != l.state.version {
		return nil, ErrPast
	}
	return l.state.page(o), nil
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
	case o.Version != 0 && o.Version < l.state.version:
		return nil, errTooOld(o.Version, l.state.version)
	default:
		c.after = max(o.Version, l.state.version)
		c.sent = c.after
	}
	return c, nil
}

// wait waits in vain for a version that the list has not reached.
func (l *List) wait(ctx context.Context, at At, version uint64) error {
	if err := agree(History{}, at); err != nil || version <= l.state.version {
		return err
	}
	timer := l.clock.NewTimer(waitAhead)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
	return errAhead(version, l.state.version)
}

// Stream is an answer that nobody ends.
func (l *List) Stream(client string, abort func()) *Stream {
	return l.streams.open(client, l.clock, abort)
}

// Clock is that of the list.
func (l *List) Clock() clock.WithTickerAndDelayedExecution { return l.clock }

// look implements log.
func (l *List) look(dst []*event, _ *Cursor) sight {
	return sight{events: dst, ok: true, version: l.state.version, reached: l.state.version}
}

// closed implements log.
func (l *List) closed(string) {}

// ordered are objects in the order of their keys.
type ordered []*wire.Object

func (o ordered) Len() int { return len(o) }

func (o ordered) from(key string) int {
	return sort.Search(len(o), func(i int) bool { return o[i].Key >= key })
}

func (o ordered) Get(like *wire.Object) (*wire.Object, bool) {
	if i := o.from(like.Key); i < len(o) && o[i].Key == like.Key {
		return o[i], true
	}
	return nil, false
}

func (o ordered) AscendGreaterOrEqual(from *wire.Object, visit btree.ItemIteratorG[*wire.Object]) {
	for _, x := range o[o.from(from.Key):] {
		if !visit(x) {
			return
		}
	}
}
