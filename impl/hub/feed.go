package hub

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
)

const (
	firstPushRetry = 100 * time.Millisecond
	maxPushRetry   = 5 * time.Second
	pushedLook     = 250 * time.Millisecond // how often the coordinator is asked what it has, until it has all
	pushedAgain    = 2 * time.Second        // and after that
)

// feed is what a leader does: it pushes each relay to the coordinator, and watches whether what the cloud showed arrived.
type feed struct {
	discovery   *discovery
	lead        func(bool) // told when this hub begins and ends to lead
	relays      []*relay.Relay
	feeders     []*feeder // of them
	shared      *shared
	ahead       ahead
	overrule    func(history uint64) // the cloud is in this one
	coordinator *coordinator
	maxAge      time.Duration // of the last sign of a stream from the cloud
	patience    time.Duration // with one resource that fails while others are fed
	refused     chan<- role.Refusal
	changed     func()
	clock       clock.WithTicker
	logger      *slog.Logger
	metrics     *metrics

	terms chan contract.Term // zero: stop

	mu     sync.Mutex
	pushes []push // of each relay under this term; nil: there is none
}

// push is what became of the feed of one relay.
type push struct {
	arrived time.Time // when the coordinator was last seen to have what the relay had shortly before; zero: not yet
	broken  bool      // the feed broke, and it was not seen to have all since
	stale   time.Time // since when it is not fresh; zero: it is
}

// start pushes under a term from now on; stop ends that. They never block for long: run takes them at once.
func (f *feed) start(t contract.Term) { f.terms <- t }

func (f *feed) stop() { f.terms <- contract.Term{} }

// run does what start and stop say until ctx ends.
func (f *feed) run(ctx context.Context) error {
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case t := <-f.terms:
			end()
			end = func() {}
			if t == (contract.Term{}) {
				continue
			}
			pushing, cancel := context.WithCancel(ctx)
			var g errgroup.Group
			f.begin(len(f.relays))
			for i, r := range f.relays {
				g.Go(func() error { f.push(pushing, i, r, t); return nil })
			}
			g.Go(func() error { f.watch(pushing); return nil })
			g.Go(func() error { f.pulse(pushing, t); return nil })
			g.Go(func() error { f.discovery.keep(pushing, t); return nil })
			f.lead(true)
			end = func() {
				f.lead(false)
				cancel()
				_ = g.Wait()
				f.begin(0)
			}
		}
	}
}

// pulse shows the coordinator that the leader lives, until ctx ends.
func (f *feed) pulse(ctx context.Context, t contract.Term) {
	for ctx.Err() == nil {
		if err := f.coordinator.pulse(ctx, t, f.clock); err != nil && ctx.Err() == nil {
			f.logger.Debug("the pulse broke; trying again", "term", t.String(), "err", err)
		}
		sleep(ctx, f.clock, firstPushRetry/2+rand.N(firstPushRetry))
	}
}

// push keeps one relay pushed until ctx ends or the coordinator refuses the term.
func (f *feed) push(ctx context.Context, i int, r *relay.Relay, t contract.Term) {
	name := r.Resource().String()
	for wait := firstPushRetry; ctx.Err() == nil; {
		if err := r.WaitSign(ctx); err != nil { // nothing to push before the first list, or a denial, and what a disk held is not news
			return
		}
		began := f.clock.Now()
		to, using, cancel := f.coordinator.with(ctx)
		err := source.Push(using, source.PushConfig{Relay: r, Coordinator: to.upstream, Term: t, Logger: f.logger})
		left := using.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return
		}
		if left { // for another replica
			wait = firstPushRetry
			continue
		}
		var refusal *source.RefusedError
		if errors.As(err, &refusal) {
			f.metrics.feeds.WithLabelValues(name, "refused").Inc()
			f.logger.Warn("the coordinator refuses this leader", "resource", name, "term", t.String(), "err", err)
			select {
			case f.refused <- role.Refusal{Term: t, Lasting: refusal.Code == http.StatusForbidden}:
			case <-ctx.Done():
			}
			return
		}
		var later *source.LaterError
		if errors.As(err, &later) { // this hub was away when the cloud was restored: the cloud itself has the word
			f.overrule(later.Number)
		}
		var far *source.FarError
		if errors.As(err, &far) { // one of both counts from what a liar said; what this relay holds is the cloud's
			f.feeders[i].Renumber(relay.History{Number: far.Number}.Next(r.Status().Version))
		}
		f.metrics.feeds.WithLabelValues(name, "broken").Inc()
		f.broke(i)
		level := slog.LevelInfo
		if f.shared.missing(name) { // that is told where it is noticed
			level = slog.LevelDebug
		}
		f.logger.Log(ctx, level, "the feed of the coordinator broke; trying again", "resource", name, "err", err)
		if f.clock.Since(began) > maxPushRetry {
			wait = firstPushRetry
		}
		wait = f.rest(ctx, wait)
	}
}

// rest waits before another try and returns how long to wait before the next one. A replica that was not tried yet is tried at once.
func (f *feed) rest(ctx context.Context, wait time.Duration) time.Duration {
	_, using, cancel := f.coordinator.with(ctx)
	defer cancel()
	sleep(using, f.clock, wait/2+rand.N(wait/2+1))
	if using.Err() != nil {
		return firstPushRetry
	}
	return min(2*wait, maxPushRetry)
}

// watch asks the coordinator what it has. Only its own word counts: a stream that takes bytes may be a black hole.
func (f *feed) watch(ctx context.Context) {
	for ctx.Err() == nil {
		asked := f.clock.Now()
		want := make([]relay.Status, len(f.relays))
		for i, r := range f.relays {
			want[i] = r.Status()
		}
		sleep(ctx, f.clock, pushedLook)
		limit, cancel := context.WithTimeout(ctx, pushedAgain)
		s, err := f.coordinator.status(limit)
		cancel()
		if err != nil {
			continue
		}
		f.shared.take(s)
		f.doubtAhead(ctx, s)
		all := f.took(asked, s, want)
		f.changed()
		if all {
			sleep(ctx, f.clock, pushedAgain)
		}
	}
}

// has tells whether a coordinator reached the version of a relay.
func (s *poolStatus) has(resource string, want relay.Status) bool {
	for _, r := range s.Resources {
		if r.Resource == resource {
			return want.Synced && r.Synced && r.History == want.History.Number && r.Version >= want.Version
		}
	}
	return false
}

// begin forgets what was pushed before.
func (f *feed) begin(relays int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pushes = make([]push, relays)
}

func (f *feed) broke(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i < len(f.pushes) {
		f.pushes[i].broken = true
	}
}

// took notes what had arrived at a coordinator of what it was wanted to have, and tells whether that is all that it can have.
func (f *feed) took(asked time.Time, s *poolStatus, want []relay.Status) (all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all = true
	for i := range f.pushes {
		name := f.relays[i].Resource().String()
		switch {
		case s.has(name, want[i]):
			f.pushes[i].arrived, f.pushes[i].broken = asked, false
		case want[i].Denied == "" && !f.shared.missing(name):
			all = false
		}
	}
	return all
}

// look tells whether the leader's streams from the cloud are fresh, and what they brought arrived at the coordinator. What the cloud does not give, or the
// coordinator does not have, is left out, and so is one that fails for long while others do not. unable: another hub may feed more.
func (f *feed) look(now time.Time) (fresh, unable bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh = len(f.pushes) > 0
	some, left := false, false
	for i := range f.pushes {
		p, r := &f.pushes[i], f.relays[i]
		if f.shared.missing(r.Resource().String()) {
			continue
		}
		if why := r.Denied(); why != nil {
			unable = unable || why.ErrStatus.Code == http.StatusForbidden // another hub may have the right; what is not there nobody has
			continue
		}
		s := r.Status()
		switch {
		case !p.arrived.IsZero() && now.Sub(p.arrived) <= f.maxAge && s.Fresh(now, f.maxAge):
			p.stale, some = time.Time{}, true
			continue
		case p.stale.IsZero():
			p.stale = now
		}
		if p.broken || f.feeders[i].Status().LastError != "" { // else it takes its time
			unable = true
			if now.Sub(p.stale) > f.patience {
				left = true
				continue
			}
		}
		fresh = false
	}
	return fresh && (some || !left), unable
}

func sleep(ctx context.Context, c clock.Clock, d time.Duration) {
	if d <= 0 {
		return
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
	case <-ctx.Done():
	}
}
