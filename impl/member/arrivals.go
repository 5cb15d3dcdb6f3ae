package member

import (
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

// arrivals are what a leader knows of its feed: what the cloud showed it, and has come to the coordinator. Only the
// coordinator's own word counts: a stream that takes bytes may be a black hole.
type arrivals struct {
	maxAge   time.Duration // of a sign from the cloud, and of the coordinator's word
	patience time.Duration // with a resource that fails while others do not

	began time.Time           // when this hub began to lead
	of    map[string]*arrival // by resource; nil: this hub does not lead
}

// arrival is what became of one relay at the coordinator.
type arrival struct {
	joins  bool      // it came within this term, and was not seen there yet
	at     time.Time // when the coordinator was last seen to have what the relay had shortly before; zero: not yet
	broken bool      // it was not seen to have all since, and does not read it
	stale  time.Time // since when it is not fresh; zero: it is
}

// begin forgets what was before, and takes the relays that there are when a term begins.
func (a *arrivals) begin(now time.Time, relays []Relay) {
	a.began, a.of = now, make(map[string]*arrival, len(relays))
	for i := range relays {
		a.of[relays[i].Name] = &arrival{}
	}
}

// took notes what had come to a coordinator of what it was wanted to have, and reports whether that is all that it can
// have. asked is when that was looked at.
func (a *arrivals) took(asked time.Time, s *PoolStatus, want map[string]relay.Status, relays []Relay,
	lacks func(*Relay) bool) (all bool) {
	before := a.of
	a.of = make(map[string]*arrival, len(want))
	all = true
	for i := range relays {
		r := &relays[i]
		wanted, was := want[r.Name]
		if !was {
			if x := before[r.Name]; x != nil {
				a.of[r.Name] = x
			}
			continue
		}
		x := before[r.Name]
		if x == nil {
			x = &arrival{joins: true}
		}
		a.of[r.Name] = x
		switch {
		case s.has(r.Name, wanted):
			x.at, x.broken, x.joins = asked, false, false
		case wanted.Denied == "" && !lacks(r):
			all = false
			there := s.Of(r.Name)
			x.broken = wanted.Synced && (there == nil || there.Feeder == "") && asked.Sub(a.began) > contract.PulseSilence
		case lacks(r): // it comes when somebody reads it there
			x.joins = true
		}
	}
	return all
}

// look reports whether the leader's streams from the cloud are fresh, and what they brought has come to the
// coordinator. What the cloud does not give, or the coordinator does not have, or has only just come, is left out, and
// so is one that fails for long while others do not. unable: another hub may feed more.
func (a *arrivals) look(now time.Time, o *Observation, lacks func(*Relay) bool) (fresh, unable bool) {
	fresh = a.of != nil
	unable = fresh && !o.Reader.Reads && now.Sub(o.Reader.Since) > contract.PulseSilence &&
		now.Sub(a.began) > contract.PulseSilence
	some, left := false, false
	for i := range o.Relays {
		r := &o.Relays[i]
		x := a.of[r.Name]
		if x == nil || x.joins || r.Joins || lacks(r) {
			continue
		}
		if r.Status.Denied != "" {
			unable = unable || r.Code == http.StatusForbidden // another hub may have the right; what is not there nobody has
			continue
		}
		switch {
		case !x.at.IsZero() && now.Sub(x.at) <= a.maxAge && r.Fresh(now, a.maxAge):
			x.stale, some = time.Time{}, true
			continue
		case x.stale.IsZero():
			x.stale = now
		}
		if x.broken || r.Failing { // else it takes its time
			unable = true
			if now.Sub(x.stale) > a.patience {
				left = true
				continue
			}
		}
		fresh = false
	}
	return fresh && (some || !left), unable
}

// refused reports whether the cloud gives this hub nothing of what the pool shares, so that it would lead in vain: it
// has just joined, say, and is not yet a user with rights.
func refused(relays []Relay) (all bool) {
	for i := range relays {
		switch r := &relays[i]; {
		case r.Joins:
		case r.From != role.Cloud || r.Status.Denied == "" || r.Code != http.StatusForbidden:
			return false
		default:
			all = true
		}
	}
	return all
}
