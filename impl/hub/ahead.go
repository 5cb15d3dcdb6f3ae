package hub

import (
	"context"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

// aheadPatience is for how long the coordinator may be ahead of a leader's relay before the cloud is asked whether that can be. A new leader
// comes to the versions of the one before within a watch at the cloud.
const aheadPatience = 15 * time.Second

// ahead is since when the coordinator has been ahead of which relay. It is of the goroutine that watches what arrives there.
type ahead map[string]time.Time

// doubtAhead looks which relays the coordinator is ahead of, in the same history, and lets those be checked that it is ahead of for long: it
// may have been fed versions that never were.
func (f *feed) doubtAhead(ctx context.Context, s *poolStatus) {
	now, still := f.clock.Now(), ahead{}
	for _, r := range s.Resources {
		i := slices.IndexFunc(f.relays, func(mine *relay.Relay) bool { return mine.Resource().String() == r.Resource })
		if i < 0 || !r.Synced {
			continue
		}
		mine := f.relays[i].Status()
		if !mine.Synced || r.History != mine.History.Number || r.Version <= mine.Version {
			continue
		}
		since, was := f.ahead[r.Resource]
		switch {
		case !was:
			since = now
		case now.Sub(since) >= aheadPatience:
			since = now // the next look is as far away
			if err := f.feeders[i].Ahead(ctx, r.Version); err != nil && ctx.Err() == nil {
				f.logger.Warn("cannot tell whether the coordinator can be ahead of this leader; trying again", "resource", r.Resource, "err", err)
			}
		}
		still[r.Resource] = since
	}
	f.ahead = still
}
