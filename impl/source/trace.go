package source

import (
	"context"
	"fmt"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// traced opens a compressed stream for a relay that misses something, and beside it a watch of what it missed, of metadata only. A list tells
// a client what it has not seen if the client has just what the relay has. But after a loss of power clients have seen more than the disk held, and
// so have hubs of the pool whose disks held more: with the trail of what happened they go on where they are, and none of them lists.
//
// The trail costs no more than a list does. What is behind that are the changes of a long time, of which no client has seen any.
func (f *Feeder) traced(ctx context.Context, up *Upstream, s relay.Status) error {
	trail, stepped, over := relay.NewTrail(s.Version), make(chan struct{}, 1), make(chan struct{})
	tracing, stop := context.WithCancel(ctx)
	go func() {
		defer close(over)
		f.trace(tracing, up, trail, max(s.Bytes/listShare, worthAList), stepped)
	}()
	defer func() {
		stop()
		<-over
	}()
	return f.streamList(ctx, up, nil, func(version uint64, items []*wire.Object) *relay.Trail {
		defer stop()
		waiting, cancel := f.limit(tracing, up, slack, fmt.Errorf("the metadata are not at version %d after %v", version, slack))
		defer cancel(nil)
		for !f.cfg.Relay.Explains(trail, version, items) {
			select {
			case <-stepped:
			case <-over:
				return trail
			case <-waiting.Done():
				return trail
			}
		}
		return trail
	}, CauseCheaper)
}

// trace follows by metadata what happened from where a trail begins, until ctx ends or so many bytes were read. Where it fails, the trail ends.
func (f *Feeder) trace(ctx context.Context, up *Upstream, trail *relay.Trail, most int64, stepped chan<- struct{}) {
	for ctx.Err() == nil {
		err := f.short(ctx, up, metadata, trail.Reached(), func(ev *wire.Event) error {
			if ev.Object != nil {
				most -= int64(len(ev.Object.Raw))
			}
			if !trail.Step(ev) || most < 0 {
				return errEnough
			}
			select {
			case stepped <- struct{}{}:
			default:
			}
			return nil
		})
		if err != nil {
			return
		}
	}
}
