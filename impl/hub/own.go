package hub

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/nodeauthority"
)

// own is what a hub is by its node's own authority.
type own struct {
	authority *nodeauthority.Authority
	filter    *filter.Own
}

// judge is who has signed the credential of this node's kubelet; nil: nobody.
func (o *own) judge() access.Authority {
	if o.authority == nil {
		return nil
	}
	return o.authority
}

// run looks after the node's own certificates.
func (o *own) run(ctx context.Context, g *errgroup.Group) {
	if o.authority != nil {
		g.Go(func() error { return o.authority.Run(ctx) })
	}
}
