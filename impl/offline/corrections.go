package offline

import (
	"context"
	"iter"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// Corrections are what other nodes know of objects, and the cloud does not. Their methods may be called by many.
type Corrections interface {
	// Stored is laid over objects of the store, as they were at a version; nil: nothing is. objects reads them
	// again.
	Stored(res relay.Resource, version uint64, objects func() iter.Seq[*wire.Object]) rest.Overlay
	// Holds reports whether they are nearer to the truth than the cloud, though that is there, until a context ends.
	Holds() (yes bool, until context.Context)
	// Owed is what a client that goes on at the cloud at a version has to be shown first.
	Owed(res relay.Resource, version uint64, objects func() iter.Seq[*wire.Object]) []*wire.Object
}

// None are the Corrections of a node without a pool.
type None struct{}

// Stored implements Corrections.
func (None) Stored(relay.Resource, uint64, func() iter.Seq[*wire.Object]) rest.Overlay { return nil }

// Holds implements Corrections.
func (None) Holds() (bool, context.Context) { return false, nil }

// Owed implements Corrections.
func (None) Owed(relay.Resource, uint64, func() iter.Seq[*wire.Object]) []*wire.Object { return nil }

// kept is what the store has of what is asked.
type kept struct {
	resource relay.Resource
	form     store.Form
	version  uint64
	objects  func() iter.Seq[*wire.Object] // reads them again
}

func keptOf(q *request.Request, kind wire.Kind, listKind string, f store.Form, version uint64,
	objects func() iter.Seq[*wire.Object]) kept {
	res := relay.NewResource(q.Resource.Group, q.Resource.Version, q.Resource.Name, kind, q.In() != "",
		wire.Encoding(f&1))
	res.ListKind = listKind
	return kept{res, f, version, objects}
}
