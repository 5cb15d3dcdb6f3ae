package coordinator

import (
	"context"

	"github.com/weir-edge/weir/impl/contract"
)

// ShareDenied lets this hub and the replica in use hold the same denylist, whoever heard of it first, until ctx ends.
func (c *Client) ShareDenied(ctx context.Context) error {
	c.Denied.Share(ctx, c.Clock, func() {
		r, asking, cancel := c.With(ctx)
		defer cancel()
		if err := c.Denied.Exchange(asking, r.Transport, r.URL.JoinPath(contract.DenylistPath)); err != nil {
			c.Logger.Debug("the coordinator does not take or show the denylist", "err", err)
		}
	})
	return nil
}
