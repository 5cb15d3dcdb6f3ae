package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// relist opens a compressed stream for a relay that is not empty. Unless the relay misses something, it is fed by plain
// watches meanwhile, and until they are as far as the list: a list may take long over a thin link, and as a difference
// it would leave out versions of objects that others have replaced. After a long gap it is such a difference, a batch
// (rule 6), as after a 410. Then metadata tell the way (trace), if anybody may have seen a part of it: all who read
// from a relay that is no restored one, and feeds no other, are where it is.
func (f *Feeder) relist(ctx context.Context, up *hop.Upstream, gap time.Duration) error {
	s := f.cfg.Relay.Status()
	current := gap == 0 && !f.behindCloud(s)
	f.cfg.Logger.Info("a list costs less than the changes one by one", "upstream", up.Name, "plain", f.thrift.plain,
		"missed", gap,
		"version", s.Version, "cloud", f.asked.Load())
	f.thrift = thrift{} // if it fails, the next one has to be worth it again
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
		waiting, cancel := f.limit(watching, up, f.cfg.WatchTimeout,
			fmt.Errorf("the watch is not at version %d after %v", version, f.cfg.WatchTimeout))
		_ = f.cfg.Relay.WaitVersion(waiting, version) // if it does not come, the list brings all
		cancel(nil)
		stop()
		beside.Wait()
		return nil
	}, CauseCheaper)
}
