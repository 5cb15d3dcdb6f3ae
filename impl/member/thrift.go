package member

import (
	"math"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

// The rate of changes is averaged over rateMemory, or over the time for which changes were seen, if that is shorter.
const (
	rateMemory = time.Minute
	rateLeast  = 10 * time.Second
)

// worthAList is the least that a list has to spare. Small relays would otherwise be listed for a handful of changes.
const worthAList = 32 << 10

// listShare is what part of a relay's bytes a compressed list of it is, at most.
const listShare = 3

// thrift decides when a list is cheaper than to go on as before, by bytes alone.
//
// kube-apiserver compresses a streaming list and the events behind it, but no watch that resumes at a version. After a
// break a feeder resumes, because most breaks are short and a few changes cost less than everything. But it then pays
// some two and a half times as much for each change, for as long as it watches. So once the plain events of one
// upstream would fill the relay again, a compressed stream is opened. A list costs about a third of the relay, so the
// sum is never twice of what it had cost to know in advance how long the watch would last: the ski rental problem.
//
// After a long break the events that were missed are the larger part. What they will be is guessed from the rate
// before. A consistent read tells it better, and also after a restart: how many versions were missed. The ring tells
// how many bytes one brings. If all of that is known to be more than a compressed list, the list is opened at once.
//
// It is for one goroutine at a time.
type thrift struct {
	plain int64     // bytes of events that came uncompressed since the upstream was chosen or listed
	sum   float64   // bytes of all events, older ones counted for less
	first time.Time // when counting began
	at    time.Time // of the last event
}

// switched notes that another upstream is used.
func (t *thrift) switched() { t.plain = 0 }

// came notes an event of a size.
func (t *thrift) came(now time.Time, size int, plain bool) {
	if plain {
		t.plain += int64(size)
	}
	if t.at.IsZero() {
		t.first = now
	} else {
		t.sum *= math.Exp(-now.Sub(t.at).Seconds() / rateMemory.Seconds())
	}
	t.sum, t.at = t.sum+float64(size), now
}

// missed estimates how many bytes of events came about in a time of which nothing is known.
func (t *thrift) missed(d time.Duration) int64 {
	counted := max(t.at.Sub(t.first), rateLeast).Seconds() / rateMemory.Seconds()
	return int64(t.sum * d.Seconds() / (rateMemory.Seconds() * (1 - math.Exp(-counted))))
}

// lists reports whether a list is the cheaper way from here. gap: the time of which the relay knows nothing. cloud: the
// version that the upstream is known to have reached, 0: none is. That much came uncompressed is no reason while a
// watch brings the little that is missing: a list instead would leave out versions that others have replaced, and
// clients of this relay would not see them.
func (t *thrift) lists(s relay.Status, gap time.Duration, cloud uint64) bool {
	switch missing := between(s, cloud) > TrailLimit(s); {
	case !s.Synced:
		return false
	case missing:
		return true
	case gap == 0 && cloud > s.Version:
		return false
	}
	return t.plain+t.missed(gap) > max(s.Bytes, worthAList)
}

// between estimates how many bytes of events came about from the relay's version to a later one.
func between(s relay.Status, version uint64) int64 {
	if version <= s.Version || s.Version <= s.Oldest {
		return 0
	}
	const states = 2 // an event in the ring holds what was before and what is now
	return int64(float64(s.RingBytes) / states * float64(version-s.Version) / float64(s.Version-s.Oldest))
}

// TrailLimit is how many bytes the trail of a relay may cost: what a compressed list of it does.
func TrailLimit(s relay.Status) int64 { return max(s.Bytes/listShare, worthAList) }
