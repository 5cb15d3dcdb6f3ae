package source

import (
	"context"
	"fmt"

	"github.com/weir-edge/weir/impl/source/hop"
)

// name asks an upstream, once, what lists of a custom resource declare. Its definition says that, and neither discovery
// nor a stream does. A relay that is the upstream says what it was told.
func (f *Feeder) name(ctx context.Context, up *hop.Upstream) {
	res := f.cfg.Relay.Resource()
	if res.Known() || res.ListKind != "" || f.named == up {
		return
	}
	ctx, cancel := f.limit(ctx, up, f.cfg.WatchTimeout, fmt.Errorf("no answer after %v", f.cfg.WatchTimeout))
	defer cancel(nil)
	kind, err := up.ListKind(ctx, res)
	switch {
	case err != nil: // what feeds the relay meets the same, and tells
		return
	case kind != res.KindOfList():
		f.cfg.Relay.Lists(kind)
	}
	f.named = up
}
