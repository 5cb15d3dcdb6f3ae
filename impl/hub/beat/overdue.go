package beat

import (
	"context"
	"time"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
)

// Overdue passes heartbeats that were left to the pool, and of which no receipt came in time, until ctx ends. Such a
// heartbeat is the kubelet's own, and younger than heartbeat.Life.
func Overdue(ctx context.Context, b *Beats) error {
	for l := (*left)(nil); ctx.Err() == nil; {
		var due <-chan time.Time
		stop := func() bool { return false }
		if l != nil {
			if wait, ok := b.Roll.lapses(); ok {
				timer := b.Clock.NewTimer(max(wait, 0))
				due, stop = timer.C(), timer.Stop
			}
		}
		select {
		case <-ctx.Done():
		case l = <-b.left:
		case <-due:
			if overdue(ctx, b, l) {
				l = nil
			}
		}
		stop()
	}
	return nil
}

// overdue passes a heartbeat, unless another one has come, or a receipt. It reports whether nothing is left to do.
func overdue(ctx context.Context, b *Beats, l *left) (done bool) {
	select {
	case <-b.turn:
		defer func() { b.turn <- struct{}{} }()
	case <-ctx.Done():
		return true
	}
	b.mu.Lock()
	held := b.held
	_, n := b.state.Last()
	b.mu.Unlock()
	if n != l.n {
		return true
	}
	b.Roll.ask(ctx)
	if wait, ok := b.Roll.lapses(); !ok || wait > 0 {
		return false
	}
	var a *uplink.Answer
	if b.Cloud.Reachable() {
		var err error
		if a, err = b.send(l.req.WithContext(ctx), l.body, l.beat, held, lease.AlongOf(held), false); err != nil {
			if ctx.Err() != nil {
				return true
			}
			b.Logger.Info("a heartbeat that the pool did not bring to the cloud did not reach it", "err", err)
		}
	}
	if a != nil {
		b.took(l.beat, a)
		b.mu.Lock()
		b.held = held // the kubelet has read no other
		b.mu.Unlock()
		return true
	}
	b.vain = b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turned(false)
	b.Count("kept")
	b.tell(l.beat)
	return true
}
