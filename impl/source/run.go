package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source/hop"
)

// maxBackoff is how long is waited at most between attempts that fail.
const maxBackoff = 15 * time.Second

// Run feeds the relay until ctx ends.
func (f *Feeder) Run(ctx context.Context) error {
	backoff := firstBackoff
	for ctx.Err() == nil {
		up, using, stop := f.begin(ctx)
		if up == nil {
			stop()
			select {
			case <-f.change:
			case <-ctx.Done():
			}
			backoff = firstBackoff
			continue
		}
		before := f.cfg.Relay.Status().ProgressAt
		f.name(using, up)
		err := f.feed(using, up)
		switched := using.Err() != nil
		stop()
		if switched {
			f.thrift.switched()
			backoff, f.barred = firstBackoff, time.Time{}
			continue
		}
		if f.cfg.Relay.Status().ProgressAt.After(before) {
			backoff = firstBackoff
		}
		f.denied(up, err)
		if err == nil {
			f.behind.Ended(up.Name)
			continue
		}
		f.doubts()
		f.learned(up, err)
		f.failed(up, err)
		kicked := f.sleep(ctx, backoff, err)
		if backoff = min(2*backoff, maxBackoff); kicked {
			backoff = firstBackoff
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

// feed lists if that is needed, then watches once, from the version reached. nil: the watch ended in order.
func (f *Feeder) feed(ctx context.Context, up *hop.Upstream) error {
	s, other := f.cfg.Relay.Status(), f.other(up)
	if s.Restored && f.restored.IsZero() {
		f.restored = f.cfg.Clock.Now()
	}
	if !s.Synced || other != nil {
		why := CauseFirst
		if s.Synced {
			why = CauseHistory
		}
		if err := f.streamList(ctx, up, other, alone, why); err != nil {
			return fmt.Errorf("streaming list: %w", err)
		}
		return nil
	}
	gap := f.gap(s)
	lasts := f.cfg.WatchTimeout
	// what was missed may be much: a question comes before it pours.
	if up.Consistent && f.doubtful() && (gap > 0 || f.late(s)) {
		version, err := f.verify(ctx, up)
		if err != nil {
			return err
		}
		if between(s, version) < worthAList {
			lasts = soonest // a relay that has all, or nearly, is fresh at the bookmark: reads wait for that
		}
	}
	if f.cheaper(up, s, gap) {
		if err := f.relist(ctx, up, gap); err != nil {
			return fmt.Errorf("streaming list: %w", err)
		}
		return nil
	}
	err := f.watch(ctx, up, s.Version, lasts)
	if hop.Gone(err) {
		f.failed(up, err)
		f.cfg.Logger.Info("the upstream has forgotten our version; looking what changed", "upstream", up.Name,
			"version", s.Version)
		if err := f.resync(ctx, up); err != nil {
			return fmt.Errorf("after 410: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}

// gap is how long the relay has missed what changed, beyond what is usual between two watches. What a disk held was
// missed from then on.
func (f *Feeder) gap(s relay.Status) time.Duration {
	age, ok := s.Age(f.cfg.Clock.Now())
	if !ok || age <= f.cfg.WatchTimeout && !s.Restored {
		return 0
	}
	return age
}

// lateAfter is the age of what a relay holds from which its upstream is asked how far it is before it is watched.
const lateAfter = 3 * time.Second

// late reports whether the relay has heard nothing for so long that a question, which takes a round trip, may spare
// more than it costs. A watch that is opened at once brings all that was missed, uncompressed, and what is under way of
// it holds up the list that would have been cheaper. A new leader mostly heard more lately.
func (f *Feeder) late(s relay.Status) bool {
	age, ok := s.Age(f.cfg.Clock.Now())
	return ok && age > lateAfter
}

// sleep waits before another attempt. kicked: the wait was ended, because the upstream is another one or answers again.
func (f *Feeder) sleep(ctx context.Context, d time.Duration, err error) (kicked bool) {
	var s *hop.StatusError
	var other *historyError
	if errors.As(err, &other) { // the list that follows is not a retry
		return
	}
	if errors.As(err, &s) {
		if s.Code == 410 { // the list that follows is not a retry
			return false
		}
		d = max(d, s.RetryAfter)
	}
	d = d/2 + rand.N(d/2+1)
	t := f.cfg.Clock.NewTimer(d)
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
