package runner

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/timeline"
	"github.com/weir-edge/weir/sim/workload"
)

// Phases whose bytes are divided by the versions of objects in them.
const (
	phaseChurn = "churn"
	phaseAlone = "alone"
)

// alonePace is how far apart changes are that nothing else is sent with.
const alonePace = time.Second

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
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.change(ctx) })
	if len(r.s.Faults) > 0 {
		r.injectAll(ctx, g)
	}
	err := g.Wait()
	r.versions = r.truth().versions(began, time.Now())
	return err
}

// changeAlone changes one object in a second, when the windows of all ways are closed: no other figure has these bytes.
func (r *run) changeAlone(ctx context.Context) error {
	began := time.Now()
	if err := r.work.Apart(ctx, r.admin, r.s.Workload.Alone, alonePace, func(c workload.Change) {
		r.time.Emit(timeline.Event{
			Lane: timeline.Workload, Name: string(c.Kind), Strings: map[string]string{
				"namespace": c.Namespace, "service": c.Service,
			},
		})
	}); err != nil {
		return err
	}
	if err := sleep(ctx, alonePace); err != nil {
		return err
	}
	if err := r.truth().catchUp(ctx, r.admin); err != nil { // clients have to show these, too
		return err
	}
	if err := r.until(ctx, settlePatience, func() (bool, string) {
		n := 0
		for _, w := range r.ways {
			n += r.behind(w)
		}
		return n == 0, fmt.Sprintf("waiting for delivery of single changes: %d clients behind", n)
	}); err != nil {
		return err
	}
	if n := r.truth().versions(began, time.Now()); n > 0 {
		r.metrics["bytes_per_change_alone"] = perVersion(r.bytesTable(r.weir()), phaseAlone, n, r.copies())
	}
	return nil
}

// perVersion is what a version of an object cost in a phase, in bytes from the cloud to each pool.
func perVersion(bytes report.ByteTable, phase string, versions int, pools int64) float64 {
	down := bytes.Sum(report.ByteRow{
		Way: report.WayWeir, Class: runtime.ClassPool, Direction: report.Down, Phase: phase,
	})
	return float64(down) / (float64(versions) * float64(pools))
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
