package digest

import "time"

// The rhythm: what is shown of a hub is an hour old at most, or half of the truth. A hub that is as it was tells 24
// times a day. One that changes all the time tells 54 times a day at most.
const (
	Usual   = time.Hour
	Soonest = time.Minute // between two
	burst   = 6           // at once, out of turn
	refill  = Usual / 2   // until there is one more of these
)

// Lapsed is the time after which the age that a hub told says nothing any more: one that goes on would have told again.
const Lapsed = 2 * Usual

// Stale is the age from which on what a hub holds counts as old, which is told out of turn.
const Stale = 2 * time.Minute

// Rhythm decides when a digest is sent. It is stepped by its owner, with a time that never goes back.
type Rhythm struct {
	last Digest
	at   time.Duration // of the last one
	told bool
	owed time.Duration // until when all that went out of turn is made up for
}

// Due reports whether a digest is to be sent: none was yet, it is time, or it says something on which somebody would
// act.
func (r *Rhythm) Due(now time.Duration, d Digest) bool {
	switch {
	case !r.told:
		return true
	case now-r.at < Soonest:
		return false
	case now-r.at >= Usual:
		return true
	}
	return r.owed-now <= (burst-1)*refill && changed(r.last, d)
}

// Told says that the cloud has taken it.
func (r *Rhythm) Told(now time.Duration, d Digest) {
	if r.told && now-r.at < Usual {
		r.owed = max(r.owed, now) + refill
	}
	r.last, r.at, r.told = d, now, true
}

// changed reports whether somebody would act on the difference: another role or version, relays that became old or
// fresh, or more than twice the bytes.
func changed(was, is Digest) bool {
	bytes := func(d Digest) int64 { return d.Down + d.Up + d.Served }
	return was.Role != is.Role || was.Version != is.Version || freshness(was) != freshness(is) || bytes(is) > 2*bytes(was)
}

func freshness(d Digest) string {
	switch {
	case d.Age < 0:
		return "unknown"
	case d.Age > Stale:
		return "old"
	}
	return "fresh"
}
