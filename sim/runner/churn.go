package runner

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/timeline"
	"github.com/weir-edge/weir/sim/workload"
)

// quiet lets nothing change for a while: streams that were opened in one go end, and are resumed.
func (r *run) quiet(ctx context.Context) error {
	began := time.Now()
	return r.until(ctx, r.s.Workload.Quiet+time.Minute, func() (bool, string) {
		left := r.s.Workload.Quiet - time.Since(began)
		return left <= 0, fmt.Sprintf("nothing changes for another %v", left.Round(time.Second))
	})
}

// churn makes the changes, and lets the faults happen beside them.
func (r *run) churn(ctx context.Context) error {
	r.stale.watch()
	defer r.watchLate(ctx)()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.change(ctx) })
	if len(r.s.Faults) > 0 {
		r.injectAll(ctx, g)
	}
	return g.Wait()
}

// change makes the changes one by one, each at its time, or as soon after it as the cloud can be written to.
func (r *run) change(ctx context.Context) error {
	w, began, tell := r.s.Workload, time.Now(), r.counting("changes")
	for i := range w.Changes {
		if err := sleep(ctx, time.Until(began.Add(time.Duration(float64(i)/w.ChangesPerSecond*float64(time.Second))))); err !=
			nil {
			return err
		}
		r.writing.Lock()
		err := r.work.Churn(ctx, r.admin, 1, w.ChangesPerSecond, nil, func(c workload.Change) {
			r.time.Emit(timeline.Event{
				Lane: timeline.Workload, Name: string(c.Kind), Strings: map[string]string{
					"namespace": c.Namespace, "service": c.Service,
				},
			})
		})
		r.writing.Unlock()
		if err != nil {
			return err
		}
		tell(i+1, w.Changes)
	}
	return nil
}
