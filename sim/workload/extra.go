package workload

import (
	"context"

	"k8s.io/client-go/kubernetes"
)

const (
	extraEvery = 8 // endpoint changes
	extraSize  = 5 // endpoints at most
)

// extraCycle is what happens to extra slices, one at a time. It has each way in which an object enters and leaves
// the set that a selector chooses: created in it and outside, moved out and in, deleted in it and outside.
var extraCycle = [...]struct {
	kind   Kind
	hidden bool
}{
	{Created, false}, {Hidden, true}, {Shown, false}, {Deleted, false},
	{Created, true}, {Shown, false}, {Deleted, false},
	{Created, false}, {Hidden, true}, {Deleted, true},
}

// extra is the one extra slice that there may be. It does not belong to its service's slices: endpoint changes leave
// it alone, and the Endpoints leave it out.
type extra struct {
	steps   int
	service *service
	slice   *slice
}

// changeExtra does the next step of the cycle.
func (w *Workload) changeExtra(ctx context.Context, client kubernetes.Interface) (Change, error) {
	x := &w.extra
	step := extraCycle[x.steps%len(extraCycle)]
	if step.kind == Created && x.slice == nil {
		x.service = w.services[w.changes.IntN(len(w.services))]
		x.slice = w.newSlice(w.changes, x.service, 1+w.changes.IntN(extraSize), 1)
	}
	x.slice.hidden = step.hidden
	change := Change{Number: w.churned, Kind: step.kind, Namespace: x.service.namespace, Service: x.service.name}
	var write Write
	var err error
	if step.kind == Deleted {
		write, err = x.service.deleteSlice(ctx, client, x.slice)
	} else {
		write, err = x.service.writeSlice(ctx, client, x.slice)
	}
	if err != nil {
		return change, err
	}
	x.steps++
	if step.kind == Deleted {
		x.service, x.slice = nil, nil
	}
	change.Writes = []Write{write}
	return change, nil
}
