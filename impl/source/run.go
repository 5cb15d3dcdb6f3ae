package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Run feeds the relay until ctx ends.
func (f *Feeder) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		up, using, stop := f.begin(ctx)
		if up == nil {
			stop()
			select {
			case <-f.change:
			case <-ctx.Done():
			}
			f.plan.Kicked()
			continue
		}
		before, began := f.cfg.Relay.Status().ProgressAt, f.cfg.Clock.Now()
		f.name(using, up)
		err := f.feed(using, up)
		switched := using.Err() != nil
		stop()
		if switched {
			f.plan.Switched()
			continue
		}
		s := f.cfg.Relay.Status()
		next := f.plan.Ended(member.End{
			Now: f.cfg.Clock.Now(), Up: f.upstream(up), Err: err, Code: hop.Answered(err), RetryAfter: hop.RetryAfter(err),
			Synced: s.Synced, Progressed: s.ProgressAt.After(before), Took: f.cfg.Clock.Since(began),
		})
		if next.Denied && up.Admits() == nil {
			f.cfg.Denied(up, err)
		}
		if err == nil {
			continue
		}
		if next.Doubt {
			f.doubts()
		}
		f.learned(up, next.Learned, err)
		f.failed(up, err)
		f.cfg.Failed(up, err)
		if f.sleep(ctx, next.Wait) {
			f.plan.Kicked()
		}
	}
	return nil
}

// begin takes the upstream to use and a context that ends when another is chosen.
func (f *Feeder) begin(ctx context.Context) (*hop.Upstream, context.Context, context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	using, stop := context.WithCancel(ctx)
	f.stop = stop
	if f.up != nil { // Use is called under the lock: what it signalled is taken in
		select {
		case <-f.change:
		default:
		}
	}
	return f.up, using, stop
}

// feed takes the next step of the plan. nil: it ended in order.
func (f *Feeder) feed(ctx context.Context, up *hop.Upstream) error {
	if s := f.cfg.Relay.Status(); s.Restored && f.restored.IsZero() {
		f.restored = f.cfg.Clock.Now()
	}
	step := f.plan.Next(f.sees(up))
	if step.Do == member.Ask {
		if _, err := f.verify(ctx, up); err != nil {
			return err
		}
		step = f.plan.Next(f.sees(up))
	}
	if step.Why == member.CauseCheaper {
		f.cfg.Logger.Info("a list costs less than the changes one by one", "upstream", up.Name, "plain", step.Plain,
			"missed", step.Missed, "version", f.cfg.Relay.Status().Version, "cloud", f.asked.Load())
	}
	switch err := f.do(ctx, up, step); {
	case err == nil, errors.Is(err, wire.ErrBase): // it is asked for whole
		return nil
	case step.Do == member.Compare:
		return fmt.Errorf("after 410: %w", err)
	case step.Do == member.Resume:
		if hop.Gone(err) {
			f.cfg.Logger.Info("the upstream has forgotten our version; looking what changed", "upstream", up.Name,
				"version", f.cfg.Relay.Status().Version)
		}
		return fmt.Errorf("watch: %w", err)
	default:
		return fmt.Errorf("streaming list: %w", err)
	}
}

// do does what the plan says.
func (f *Feeder) do(ctx context.Context, up *hop.Upstream, step member.Step) error {
	switch step.Do {
	case member.Compare:
		return f.resync(ctx, up)
	case member.ListBeside:
		return f.relist(ctx, up)
	case member.ListTraced:
		return f.traced(ctx, up, f.cfg.Relay.Status())
	case member.List:
		return f.streamList(ctx, up, step.Another, alone, step.Why)
	case member.Resume, member.Ask:
	}
	return f.watch(ctx, up, f.cfg.Relay.Status().Version, step.Lasts)
}

// sleep waits before another attempt. kicked: the wait was ended, because the upstream is another one or answers again.
func (f *Feeder) sleep(ctx context.Context, d time.Duration) (kicked bool) {
	if d == 0 {
		return false
	}
	t := f.cfg.Clock.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C():
		return false
	case <-f.change:
		return true
	case <-ctx.Done():
		return false
	}
}
