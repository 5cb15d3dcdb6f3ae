package coordinator

import (
	"context"

	"github.com/weir-edge/weir/impl/directory"
)

// AskTold asks the one in use what the pool is told about itself, while the cloud does not tell, until ctx ends.
func (c *Client) AskTold(ctx context.Context, d *directory.Directory) error {
	directory.Keep(ctx, c.Clock, false, func(ctx context.Context) error {
		r, asking, cancel := c.With(ctx)
		defer cancel()
		err := d.Ask(asking, r.Transport, r.URL, false)
		if err != nil {
			c.Logger.Debug("the coordinator does not say what the pool is told about itself", "err", err)
		}
		return err
	})
	return nil
}
