package coordinator

import (
	"context"
	"errors"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/source"
)

// puller keeps a relay fed from the replica that the leader feeds, while that is another one. Freshness comes along: the other
// relay passes on each sign of its own feed. It never goes round in a circle, where old news would vouch for itself, because
// everybody pulls from the one that claimed last, and that one pulls from nobody.
type puller struct {
	slot   *slot
	feeder *source.Feeder
	peers  *peers
	fed    *fed
}

var errMoved = errors.New("another replica is fed now")

func newPuller(s *slot, p *peers, f *fed, c clock.WithTicker) (*puller, error) {
	feeder, err := source.NewFeeder(source.Config{Relay: s.relay, Clock: c, Logger: p.logger})
	if err != nil {
		return nil, err
	}
	return &puller{s, feeder, p, f}, nil
}

// run pulls until ctx ends.
func (p *puller) run(ctx context.Context) error {
	for ctx.Err() == nil {
		now, change := p.fed.now()
		up := p.peers.upstreams[now.Replica] // nil: this one, or nobody is fed yet
		if up == nil {
			select {
			case <-change:
			case <-ctx.Done():
			}
			continue
		}
		if busy := p.pull(ctx, now.Replica, up, change); busy != nil {
			select {
			case <-busy:
			case <-change:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// pull feeds the relay until another replica is fed, or the leader comes here. If the relay is fed, it returns what is closed
// when it no longer is.
func (p *puller) pull(ctx context.Context, from string, up *source.Upstream, change <-chan struct{}) (busy <-chan struct{}) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	x := &feeding{replica: from, end: end, done: make(chan struct{})}
	if busy := p.slot.claimFree(x); busy != nil {
		return busy
	}
	defer p.slot.leave(x)
	go func() {
		select {
		case <-change:
			end(errMoved)
		case <-ctx.Done():
		}
	}()
	p.feeder.Use(up)
	_ = p.feeder.Run(ctx)
	return nil
}
