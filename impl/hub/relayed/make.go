package relayed

import (
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Make makes the relay of a resource and what feeds it. late: others are served already.
func (s *Sources) Make(res relay.Resource, late bool) (*Feeder, error) {
	r, err := relay.New(relay.Config{Resource: res, RingAge: s.RingAge, Late: late, Clock: s.Clock, Logger: s.Logger})
	if err != nil {
		return nil, err
	}
	return NewFeeder(source.Config{
		Relay: r, WatchTimeout: s.WatchTimeout, Learned: s.learned, Judge: s.Judge, Pulse: &s.Pulse,
		Doubt: func(err error) { s.Member.Contradict(res.String(), err) }, Feeds: s.Member.Takes, Clock: s.Clock,
		Logger: s.Logger,
	}, func() { s.Member.Denied(res.String()) })
}

// Judge is the cloud while it can be asked.
func (s *Sources) Judge() *hop.Upstream {
	if !s.There() {
		return nil
	}
	return s.Cloud
}

// Follow has f told each time that the cloud is in another history: by the cloud, or by somebody of the pool. It must
// be called before any feeder runs.
func (s *Sources) Follow(f func(number uint64, byCloud bool)) { s.follow = append(s.follow, f) }

// learned follows another history of the cloud. What is kept of it for the time without it is of before, wherever this
// hub heard of that: a store that went on would take the truth for the word of a server that lags.
func (s *Sources) learned(number uint64, byCloud bool) {
	for _, f := range s.follow {
		f(number, byCloud)
	}
	if !byCloud {
		return
	}
	for _, f := range s.All() { // one may be able to prove what another cannot
		f.Overrule(number)
	}
}

// Overrule takes the word of the cloud for which history it is in.
func (s *Sources) Overrule(number uint64) { s.learned(number, true) }
