package mvcc

import (
	"sort"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Batch is a list that replaced an older state: its events lead from version From to version To. They leave out forms
// of objects that others have replaced.
type Batch struct {
	From, To uint64
	// Admitted: whoever has seen a state inside, elsewhere, up to this version, goes on from there as if all had been
	// told. 0: nobody can, because it is not known what happened on the way (see Trail).
	Admitted uint64
}

// Inside reports whether a version is none that the batch leads from or to.
func (b *Batch) Inside(v uint64) bool { return b != nil && b.From < v && v < b.To }

// Admits reports whether a client that has seen a version goes on with the rest of the batch.
func (b *Batch) Admits(v uint64) bool { return !b.Inside(v) || v <= b.Admitted }

// step is one event of a batch: an object in a new form, or one that is gone.
type step struct {
	version uint64
	o       *wire.Object
	gone    bool
}

// stepsOf are what events of a watch do.
func stepsOf(events []*wire.Event) []step {
	steps := make([]step, 0, len(events))
	for _, ev := range events {
		steps = append(steps, step{ev.Version, ev.Object, ev.Type == wire.Deleted})
	}
	return steps
}

// undated are the steps from a list alone. When objects went is not known: these steps have the version that the batch
// starts from.
func undated(b *Batch, gone, changed []*wire.Object) []step {
	steps := make([]step, 0, len(gone)+len(changed))
	for _, o := range gone {
		steps = append(steps, step{version: b.From, o: o, gone: true})
	}
	for _, o := range changed {
		steps = append(steps, step{version: o.Version, o: o})
	}
	inOrder(steps)
	return steps
}

func inOrder(steps []step) {
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].version < steps[j].version })
}
