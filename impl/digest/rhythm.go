package digest

import (
	"slices"
	"strings"
	"time"
)

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

// changed reports whether somebody would act on the difference: another role, cause, edge or version, relays that
// became old or fresh, or more than twice the bytes.
func changed(was, is Digest) bool {
	bytes := func(d Digest) int64 { return d.Down + d.Up + d.Served + d.Images.Pulled + d.Images.Saved }
	return was.Role != is.Role || was.Cause != is.Cause || was.Edges != is.Edges || was.Version != is.Version ||
		freshness(was) != freshness(is) || bytes(is) > 2*bytes(was)
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

// ReadsFirst is the time until reads are told first: clients have come back to a hub that was started. ReadsUsual is
// the time between two tellings, and ReadsSoonest when others are read, or no more. So a hub tells them 24 times a day
// at most.
const (
	ReadsFirst   = time.Minute
	ReadsUsual   = 6 * time.Hour
	ReadsSoonest = time.Hour
)

// ReadsLapsed is the time after which reads that a hub told say nothing any more.
const ReadsLapsed = 2 * ReadsUsual

// ReadsRhythm decides when reads are told. It is stepped by its owner, with the time since the hub was started.
type ReadsRhythm struct {
	names string // of the last ones
	at    time.Duration
	told  bool
}

// Due reports whether reads are to be told: it is time, or other resources are read.
func (r *ReadsRhythm) Due(now time.Duration, is Reads) bool {
	switch {
	case !r.told:
		return now >= ReadsFirst
	case now-r.at >= ReadsUsual:
		return true
	case now-r.at < ReadsSoonest:
		return false
	}
	return r.names != names(is)
}

// Told says that the cloud has taken them.
func (r *ReadsRhythm) Told(now time.Duration, is Reads) {
	r.names, r.at, r.told = names(is), now, true
}

// names are those of the resources that reads tell, whatever their order.
func names(r Reads) string {
	told, err := ParseReads(r.Text()) // what has no place is not told
	if err != nil {
		return ""
	}
	var all []string
	for _, p := range told.Passed {
		all = append(all, p.Resource)
	}
	slices.Sort(all)
	return strings.Join(append(append(all, "!"), told.Unread...), " ")
}
