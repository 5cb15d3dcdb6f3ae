package membership

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
)

// lead is what a leader does beside showing its relays: it keeps what the cloud serves, and forwards heartbeats.
type lead struct {
	discovery  *pooldoor.Discovery
	forwarding *beat.Forwarding
	leads      chan bool
}

// run begins and ends to lead as it is told, until ctx ends.
func (l *lead) run(ctx context.Context) error {
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case leads := <-l.leads:
			end()
			end = func() {}
			if !leads {
				continue
			}
			lasts, cancel := context.WithCancel(ctx)
			var g errgroup.Group
			g.Go(func() error { l.discovery.Keep(lasts); return nil })
			l.forwarding.Lead(true)
			end = func() {
				l.forwarding.Lead(false)
				cancel()
				_ = g.Wait()
			}
		}
	}
}
