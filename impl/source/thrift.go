package source

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// The rate of changes is averaged over rateMemory, or over the time for which changes were seen, if that is shorter.
const (
	rateMemory = time.Minute
	rateLeast  = 10 * time.Second
)

// lateAfter is the age of what a relay holds from which its upstream is asked how far it is before it is watched.
const lateAfter = 3 * time.Second

// worthAList is the least that a list has to spare. Small relays would otherwise be listed for a handful of changes.
const worthAList = 32 << 10

// listShare is what part of a relay's bytes a compressed list of it is, at most.
const listShare = 3

// thrift decides when a list is cheaper than to go on as before, by bytes alone.
//
// kube-apiserver compresses a streaming list and the events behind it, but no watch that resumes at a version. After a break a
// feeder resumes, because most breaks are short and a few changes cost less than everything. But it then pays some two and a
// half times as much for each change, for as long as it watches. So once the plain events of one upstream would fill the relay
// anew, a compressed stream is opened. A list costs about a third of the relay, so the sum is never twice of what it had cost to
// know in advance how long the watch would last: the ski rental problem.
//
// After a long break the events that were missed are the larger part. What they will be is guessed from the rate before. A consistent read
// tells it better, and also after a restart: how many versions were missed. The ring tells how many bytes one brings. If all of that
// is known to be more than a compressed list, the list is opened at once.
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

// lists tells whether a list is the cheaper way from here. gap: the time of which the relay knows nothing. cloud: the version that the
// upstream is known to have reached, 0: none is. That much came uncompressed is no reason while a watch brings the little that is missing: a list
// instead would leave out versions that others have replaced, and clients of this relay would not see them.
func (t *thrift) lists(s relay.Status, gap time.Duration, cloud uint64) bool {
	switch missing := between(s, cloud) > max(s.Bytes/listShare, worthAList); {
	case !s.Synced:
		return false
	case missing:
		return true
	case gap == 0 && cloud > s.Version:
		return false
	}
	return t.plain+t.missed(gap) > max(s.Bytes, worthAList)
}

// cheaper tells whether a list of an upstream is. What is not compressed behind it only saves what was missed.
func (f *Feeder) cheaper(up *hop.Upstream, s relay.Status, gap time.Duration) bool {
	cloud := f.asked.Load()
	if f.plainAt.Load() == up {
		return s.Synced && between(s, cloud) > max(s.Bytes, worthAList)
	}
	return up.Gzip && f.thrift.lists(s, gap, cloud)
}

// between estimates how many bytes of events came about from the relay's version to a later one.
func between(s relay.Status, version uint64) int64 {
	if version <= s.Version || s.Version <= s.Oldest {
		return 0
	}
	const states = 2 // an event in the ring holds what was before and what is now
	return int64(float64(s.RingBytes) / states * float64(version-s.Version) / float64(s.Version-s.Oldest))
}

// gap is how long the relay has missed what changed, beyond what is usual between two watches. What a disk held was missed from then on.
func (f *Feeder) gap(s relay.Status) time.Duration {
	age, ok := s.Age(f.cfg.Clock.Now())
	if !ok || age <= f.cfg.WatchTimeout && !s.Restored {
		return 0
	}
	return age
}

// late tells whether the relay has heard nothing for so long that a question, which takes a round trip, may spare more than it costs. A watch
// that is opened at once brings all that was missed, uncompressed, and what is under way of it holds up the list that would have been cheaper. A new leader
// mostly heard more lately.
func (f *Feeder) late(s relay.Status) bool {
	age, ok := s.Age(f.cfg.Clock.Now())
	return ok && age > lateAfter
}

// alone is the settle of a streamList beside which nothing feeds the relay.
func alone(uint64, []*wire.Object) *mvcc.Trail { return nil }

// relist opens a compressed stream for a relay that is not empty. Unless the relay misses something, it is fed by plain watches
// meanwhile, and until they are as far as the list: a list may take long over a thin link, and as a difference it would leave out
// versions of objects that others have replaced. After a long gap it is such a difference, a batch (rule 6), as after a 410. Then metadata tell
// the way (trace), if anybody may have seen a part of it: all who read from a relay that is no restored one, and feeds no other, are where it is.
func (f *Feeder) relist(ctx context.Context, up *hop.Upstream, gap time.Duration) error {
	s := f.cfg.Relay.Status()
	current := gap == 0 && !f.behindCloud(s)
	f.cfg.Logger.Info("a list costs less than the changes one by one", "upstream", up.Name, "plain", f.thrift.plain, "missed", gap,
		"version", s.Version, "cloud", f.asked.Load())
	f.thrift = thrift{} // if it fails, the next one has to be worth it anew
	switch {
	case !current && !s.Restored && !f.cfg.Feeds():
		return f.streamList(ctx, up, nil, alone, CauseCheaper)
	case !current:
		return f.traced(ctx, up, s)
	}
	watching, stop := context.WithCancel(ctx) // also ended if the watch fails
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() {
		defer stop()
		for watching.Err() == nil {
			if f.watch(watching, up, f.cfg.Relay.Status().Version, f.cfg.WatchTimeout) != nil {
				return // the list brings all
			}
		}
	})
	return f.streamList(ctx, up, nil, func(version uint64, _ []*wire.Object) *mvcc.Trail {
		waiting, cancel := f.limit(watching, up, f.cfg.WatchTimeout, fmt.Errorf("the watch is not at version %d after %v", version, f.cfg.WatchTimeout))
		_ = f.cfg.Relay.WaitVersion(waiting, version) // if it does not come, the list brings all
		cancel(nil)
		stop()
		beside.Wait()
		return nil
	}, CauseCheaper)
}
