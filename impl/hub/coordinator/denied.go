package coordinator

import (
	"context"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/denylist"
	"github.com/weir-edge/weir/impl/pause"
)

// ShareDenied lets this hub and the replica in use hold the same denylist, whoever heard of it first, until ctx ends.
func (c *Client) ShareDenied(ctx context.Context) error {
	for ; ctx.Err() == nil; pause.For(ctx, c.Clock, denylist.Often) {
		r, asking, cancel := c.With(ctx)
		if err := c.Denied.Exchange(asking, r.Transport, r.URL.JoinPath(contract.DenylistPath)); err != nil {
			c.Logger.Debug("the coordinator does not take or show the denylist", "err", err)
		}
		cancel()
	}
	return nil
}
