package hub

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/nodeauthority"
	"github.com/weir-edge/weir/impl/hub/pods"
)

// own is what a hub is for its node alone.
type own struct {
	authority *nodeauthority.Authority // nil: it has none, and so for what follows
	filter    *filter.Own
	pods      *pods.Pods
	callers   *pods.Callers
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
	g.Go(func() error { return o.callers.Run(ctx) })
	if o.authority != nil {
		g.Go(func() error { return o.authority.Run(ctx) })
	}
}
