package member

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/pause"
	"github.com/weir-edge/weir/impl/relay"
)

const (
	arrivedLook  = 250 * time.Millisecond // how often the coordinator is asked what it has, until it has all
	arrivedAgain = 2 * time.Second        // and after that
)

// feed is what a leader does beside showing its relays: it watches whether what the cloud showed arrived at the coordinator, and that both agree
// on the history of the cloud.
type feed struct {
	*Config
	shared    *shared
	ahead     ahead
	overruled map[string]uint64 // histories by the coordinator's word; of the goroutine that watches
	changed   func()

	leads chan leading

	mu       sync.Mutex
	began    time.Time                 // when this hub began to lead
	arrivals map[*relay.Relay]*arrival // of each relay in this term; nil: there is none
}

// arrival is what became of one relay at the coordinator.
type arrival struct {
	joins  bool      // it came within this term, and was not seen there yet
	at     time.Time // when the coordinator was last seen to have what the relay had shortly before; zero: not yet
	broken bool      // it was not seen to have all since, and does not read it
	stale  time.Time // since when it is not fresh; zero: it is
}

// leading is how a hub leads.
type leading uint8

const (
	not        leading = iota
	elected            // it feeds the coordinator
	designated         // it shows what it has, and who reads it looks after himself
)

// start says that this hub leads, stop that it does no more. They never block for long: run takes them at once.
func (f *feed) start(byLease bool) {
	if byLease {
		f.leads <- elected
		return
	}
	f.leads <- designated
}

func (f *feed) stop() { f.leads <- not }

// run does what start and stop say until ctx ends.
func (f *feed) run(ctx context.Context) error {
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case leads := <-f.leads:
			end()
			end = func() {}
			if leads == not {
				continue
			}
			lasts, cancel := context.WithCancel(ctx)
			var g errgroup.Group
			if leads == elected {
				f.begin(f.Sources.Relays())
				g.Go(func() error { f.watch(lasts); return nil })
			}
			g.Go(func() error { f.Discovery.Keep(lasts); return nil })
			f.Forwarding.Lead(true)
			end = func() {
				f.Forwarding.Lead(false)
				cancel()
				_ = g.Wait()
				f.begin(nil)
			}
		}
	}
}

// watch asks the coordinator what it has. Only its own word counts: a stream that takes bytes may be a black hole.
func (f *feed) watch(ctx context.Context) {
	f.overruled = map[string]uint64{}
	for ctx.Err() == nil {
		asked := f.Clock.Now()
		want := map[*relay.Relay]relay.Status{}
		for _, r := range f.Sources.Relays() {
			want[r] = r.Status()
		}
		pause.For(ctx, f.Clock, arrivedLook)
		limit, cancel := context.WithTimeout(ctx, arrivedAgain)
		s, err := f.Coordinator.Status(limit)
		cancel()
		if err != nil {
			continue
		}
		f.shared.take(asked, s)
		f.agree(s)
		f.ahead.look(ctx, s)
		all := f.took(asked, s, want)
		f.changed()
		if all {
			pause.For(ctx, f.Clock, arrivedAgain)
		}
	}
}

// agree looks which history of the cloud the coordinator is in. In a later one: this hub was away when the cloud was restored, and the cloud itself has the
// word. In one so early that it cannot believe in this hub's: one of both counts from what a liar said, and what this hub holds is the cloud's.
func (f *feed) agree(s *coordinator.Status) {
	for _, x := range f.Sources.All() {
		theirs, mine := s.Of(x.Resource), x.Relay.Status()
		if theirs == nil || !theirs.Synced || !mine.Synced {
			continue
		}
		switch h := (relay.History{Number: theirs.History}); {
		case h.Number > mine.History.Number && h.Number > f.overruled[theirs.Resource]:
			f.overruled[theirs.Resource] = h.Number
			f.Logger.Warn("the coordinator is in a later history of the cloud than this leader", "resource", theirs.Resource, "history", h.Number, "mine", mine.History.Number)
			f.Overrule(h.Number)
		case !h.Near(mine.History):
			x.Renumber(h.Next(mine.Version))
		}
	}
}

// begin forgets what was before.
func (f *feed) begin(relays []*relay.Relay) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began, f.arrivals = f.Clock.Now(), make(map[*relay.Relay]*arrival, len(relays))
	for _, r := range relays {
		f.arrivals[r] = &arrival{}
	}
}

// took notes what had arrived at a coordinator of what it was wanted to have, and tells whether that is all that it can have.
func (f *feed) took(asked time.Time, s *coordinator.Status, want map[*relay.Relay]relay.Status) (all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.arrivals, func(r *relay.Relay, _ *arrival) bool { _, there := want[r]; return !there })
	all = true
	for r, wanted := range want {
		x, name, feeder := f.arrivals[r], r.Resource().String(), f.Sources.Of(r)
		if x == nil {
			x = &arrival{joins: true}
			f.arrivals[r] = x
		}
		switch {
		case s.Has(name, wanted):
			x.at, x.broken, x.joins = asked, false, false
		case wanted.Denied == "" && feeder != nil && !f.shared.missing(feeder):
			all = false
			x.broken = wanted.Synced && s.Of(name).Feeder == "" && asked.Sub(f.began) > contract.PulseSilence
		}
	}
	return all
}

// look tells whether the leader's streams from the cloud are fresh, and what they brought arrived at the coordinator. What the cloud does not give, or the
// coordinator does not have, or has only just come, is left out, and so is one that fails for long while others do not. unable: another hub may feed more.
func (f *feed) look(now time.Time) (fresh, unable bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh = len(f.arrivals) > 0
	read, since := f.Read()
	unread := fresh && !read && now.Sub(since) > contract.PulseSilence && now.Sub(f.began) > contract.PulseSilence
	unable = unread
	some, left := false, false
	for r, x := range f.arrivals {
		feeder, s := f.Sources.Of(r), r.Status()
		if feeder == nil || x.joins || s.Joins || f.shared.missing(feeder) {
			continue
		}
		if why := r.Denied(); why != nil {
			unable = unable || why.ErrStatus.Code == http.StatusForbidden // another hub may have the right; what is not there nobody has
			continue
		}
		switch {
		case !x.at.IsZero() && now.Sub(x.at) <= f.MaxAge && s.Fresh(now, f.MaxAge):
			x.stale, some = time.Time{}, true
			continue
		case x.stale.IsZero():
			x.stale = now
		}
		if x.broken || feeder.Status().LastError != "" { // else it takes its time
			unable = true
			if now.Sub(x.stale) > f.Role.LeaseDuration/3 {
				left = true
				continue
			}
		}
		fresh = false
	}
	return fresh && (some || !left), unable
}
