package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Churn makes changes: so many endpoint changes, perSecond of them in a second (0: as fast as the cloud takes them),
// and after each eighth a change of a small extra slice. It may be called again and goes on where it was.
// progress and onChange may be nil; onChange is called when all writes of a change are done.
func (w *Workload) Churn(ctx context.Context, client kubernetes.Interface, changes int, perSecond float64,
	progress Progress, onChange func(Change)) error {
	if w.err != nil {
		return w.err
	}
	if w.services[len(w.services)-1].endpointsVersion == "" {
		return errors.New("churn: the cloud is empty: call Fill first")
	}
	if onChange == nil {
		onChange = func(Change) {}
	}
	var interval time.Duration
	if perSecond > 0 {
		interval = time.Duration(float64(time.Second) / perSecond)
	}
	start := w.config.Clock.Now()
	for i := range changes {
		// Due times are counted from the start: a slow write delays no later change for good.
		if err := w.waitUntil(ctx, start.Add(time.Duration(i)*interval)); err != nil {
			return err
		}
		change, err := w.changeOne(ctx, client, interval)
		if err != nil {
			return fmt.Errorf("change %d of %d: %w", i+1, changes, err)
		}
		onChange(change)
		if w.churned%extraEvery == 0 {
			if change, err = w.changeExtra(ctx, client); err != nil {
				return fmt.Errorf("change of an extra slice after change %d of %d: %w", i+1, changes, err)
			}
			onChange(change)
		}
		if progress != nil {
			progress(i+1, changes)
		}
	}
	return nil
}

// Apart makes changes of one object each, so far apart: of one endpoint, in its slice and then in the Endpoints of its
// service. It goes on where Churn was, and Churn where it was. After an odd number the two objects differ until the
// service changes again. onChange may be nil; it is called after each write.
func (w *Workload) Apart(ctx context.Context, client kubernetes.Interface, changes int, apart time.Duration,
	onChange func(Change)) error {
	if w.err != nil {
		return w.err
	}
	if w.services[len(w.services)-1].endpointsVersion == "" {
		return errors.New("changes apart: the cloud is empty: call Fill first")
	}
	start := w.config.Clock.Now()
	var s *service
	var change Change
	for i := range changes {
		if err := w.waitUntil(ctx, start.Add(time.Duration(i)*apart)); err != nil {
			return err
		}
		var write Write
		var err error
		if i%2 == 0 {
			var sl *slice
			s, sl, change = w.changeSome(2 * apart)
			write, err = s.writeSlice(ctx, client, sl)
		} else {
			write, err = s.writeEndpoints(ctx, client)
		}
		if err != nil {
			return fmt.Errorf("change %d of %d: %w", i+1, changes, err)
		}
		if change.Writes = []Write{write}; onChange != nil {
			onChange(change)
		}
	}
	return nil
}

// changeSome changes one endpoint of some service, and writes nothing.
func (w *Workload) changeSome(interval time.Duration) (*service, *slice, Change) {
	s := w.services[w.changes.IntN(len(w.services))]
	kind, sl := w.changeEndpoint(s)
	w.churned++
	// The transition times of a pod, which these stand for, have no fraction of a second.
	w.elapsed += interval
	s.trigger = w.base.Add(w.elapsed).Truncate(time.Second)
	return s, sl, Change{Number: w.churned, Kind: kind, Namespace: s.namespace, Service: s.name}
}

func (w *Workload) changeOne(ctx context.Context, client kubernetes.Interface, interval time.Duration) (Change, error) {
	s, sl, change := w.changeSome(interval)
	write, err := s.writeSlice(ctx, client, sl)
	if err != nil {
		return change, err
	}
	change.Writes = append(change.Writes, write)
	if write, err = s.writeEndpoints(ctx, client); err != nil {
		return change, err
	}
	change.Writes = append(change.Writes, write)
	return change, nil
}

// waitUntil waits until the clock shows t.
func (w *Workload) waitUntil(ctx context.Context, t time.Time) error {
	wait := t.Sub(w.config.Clock.Now())
	if wait <= 0 {
		return ctx.Err()
	}
	timer := w.config.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
