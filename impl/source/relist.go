package source

import (
	"context"
	"fmt"
	"sync"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// relist opens a compressed stream for a relay that is fed by plain watches until they are as far as the list.
func (f *Feeder) relist(ctx context.Context, up *hop.Upstream) error {
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
		waiting, cancel := f.limit(watching, up, f.cfg.WatchTimeout,
			fmt.Errorf("the watch is not at version %d after %v", version, f.cfg.WatchTimeout))
		_ = f.cfg.Relay.WaitVersion(waiting, version) // if it does not come, the list brings all
		cancel(nil)
		stop()
		beside.Wait()
		return nil
	}, member.CauseCheaper)
}
