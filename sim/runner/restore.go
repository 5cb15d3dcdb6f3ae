package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// restorable is the cloud's apiserver.
func (r *run) restorable() (runtime.Restorable, error) {
	p, err := r.site.Part(runtime.APIServer)
	if err != nil {
		return nil, err
	}
	c, ok := p.(runtime.Restorable)
	if !ok {
		return nil, errors.New("this runtime cannot restore a cloud")
	}
	return c, nil
}

// BackUp implements scenario.Restorer: it makes the backup from which the cloud will be restored.
func (r *run) BackUp(ctx context.Context) error {
	c, err := r.restorable()
	if err != nil {
		return err
	}
	r.time.Emit(timeline.Event{Lane: timeline.Fault, Name: "backup"})
	return c.Backup(ctx)
}

// Restore implements scenario.Restorer: it gives the cloud, whose apiserver has ended, the history of the backup.
// Nothing is written meanwhile. The recorders of the truth begin again: in the other history they would, as any client
// of kube-apiserver, wait in silence for versions that they had seen in this one.
func (r *run) Restore(ctx context.Context, at *scenario.Aim) error {
	c, err := r.restorable()
	if err != nil {
		return err
	}
	before := r.truth()
	before.end()
	for _, s := range before.streams {
		s.Wait()
	}
	revision, err := c.Restore(ctx)
	if err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("the cloud is restored at resourceVersion %d", revision))
	// Before it can be reached: who is faster than the recorders is not judged by the history that is lost.
	began := time.Now()
	if err := c.Start(ctx); err != nil {
		return err
	}
	at.Back()
	now, err := r.record()
	if err != nil {
		return err
	}
	now.before, now.began, now.from = before, began, revision
	for _, s := range now.streams {
		r.background.Go(s.Wait)
	}
	if err := r.until(ctx, syncPatience, func() (bool, string) {
		return now.synced(), "waiting for the recorders of the truth"
	}); err != nil {
		return err
	}
	r.history.Store(now)
	if err := r.forgotten(ctx); err != nil {
		return err
	}
	return r.work.Reread(ctx, r.admin)
}
