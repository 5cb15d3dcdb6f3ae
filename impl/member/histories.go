package member

import (
	"log/slog"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

// aheadPatience is for how long the coordinator may be ahead of a leader's relay before the cloud is asked whether that
// can be. A new leader comes to the versions of the one before within a watch at the cloud.
const aheadPatience = 15 * time.Second

// histories compare the history of the cloud that the coordinator is in with the one of a leader.
type histories struct {
	overruled map[string]uint64    // by the coordinator's word in this term, by resource
	ahead     map[string]time.Time // since when the coordinator is ahead of a relay, in the same history
}

// agree looks which history of the cloud the coordinator is in. In a later one: this hub was away when the cloud was
// restored, and the cloud itself has the last word. In one so early that it cannot believe in this hub's: one of both
// counts from what a liar said, and what this hub holds is the cloud's.
func (h *histories) agree(s *PoolStatus, relays []Relay) (effects []Effect) {
	for i := range relays {
		mine := &relays[i]
		theirs := s.Of(mine.Name)
		if theirs == nil || !theirs.Synced || !mine.Synced {
			continue
		}
		switch in := (relay.History{Number: theirs.History}); {
		case in.Number > mine.History.Number && in.Number > h.overruled[mine.Name]:
			h.overruled[mine.Name] = in.Number
			effects = append(effects, Log{slog.LevelWarn, "the coordinator is in a later history of the cloud than this leader",
				[]any{"resource", mine.Name, "history", in.Number, "mine", mine.History.Number}}, Overrule{in.Number})
		case !in.Near(mine.History):
			effects = append(effects, Renumber{mine.Name, in.Next(mine.Version)})
		}
	}
	return effects
}

// look looks which relays the coordinator is ahead of, in the same history, and lets the cloud be asked where it is so
// for long: the coordinator may have been fed versions that never were.
func (h *histories) look(now time.Time, s *PoolStatus, relays []Relay) (effects []Effect) {
	still := map[string]time.Time{}
	for i := range relays {
		mine := &relays[i]
		r := s.Of(mine.Name)
		if r == nil || !r.Synced || !mine.Synced || r.History != mine.History.Number || r.Version <= mine.Version {
			continue
		}
		since, was := h.ahead[mine.Name]
		switch {
		case !was:
			since = now
		case now.Sub(since) >= aheadPatience:
			since = now // the next look is as far away
			effects = append(effects, Verify{mine.Name, r.Version})
		}
		still[mine.Name] = since
	}
	h.ahead = still
	return effects
}
