package member

import (
	"context"
	"time"

	"github.com/weir-edge/weir/impl/hub/coordinator"
)

// aheadPatience is for how long the coordinator may be ahead of a leader's relay before the cloud is asked whether that can be. A new leader
// comes to the versions of the one before within a watch at the cloud.
const aheadPatience = 15 * time.Second

// ahead knows since when the coordinator has been ahead of which relay. It is of the goroutine that watches what arrives there.
type ahead struct {
	*Config
	since map[string]time.Time
}

// look looks which relays the coordinator is ahead of, in the same history, and lets those be checked that it is ahead of for long: it
// may have been fed versions that never were.
func (a *ahead) look(ctx context.Context, s *coordinator.Status) {
	now, still := a.Clock.Now(), map[string]time.Time{}
	for _, r := range s.Resources {
		f := a.Sources.Named(r.Resource)
		if f == nil || !r.Synced {
			continue
		}
		mine := f.Relay.Status()
		if !mine.Synced || r.History != mine.History.Number || r.Version <= mine.Version {
			continue
		}
		since, was := a.since[r.Resource]
		switch {
		case !was:
			since = now
		case now.Sub(since) >= aheadPatience:
			since = now // the next look is as far away
			if err := f.Ahead(ctx, r.Version); err != nil && ctx.Err() == nil {
				a.Logger.Warn("cannot tell whether the coordinator can be ahead of this leader; trying again", "resource", r.Resource, "err", err)
			}
		}
		still[r.Resource] = since
	}
	a.since = still
}
