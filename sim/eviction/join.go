package eviction

import (
	"context"
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/runtime"
)

// firstMinute is what is measured of a node that joins.
const firstMinute = time.Minute

// parts are what is to be started in the beginning, or what runs on the node that joins later.
func (c *column) parts(joins bool) (first, kubelets []runtime.PartID) {
	other := func(id runtime.PartID) bool { return (c.joins != "" && id.Of() == c.joins) != joins }
	first, kubelets = c.Parts()
	return slices.DeleteFunc(first, other), slices.DeleteFunc(kubelets, other)
}

// join starts one more node of the pool, and measures what crosses its uplink in its first minute.
func (c *column) join(ctx context.Context) error {
	if c.joins == "" {
		return nil
	}
	c.joining = Span{From: time.Now(), To: time.Now().Add(firstMinute)}
	first, kubelets := c.parts(true)
	if err := runtime.Start(ctx, c.Site, first...); err != nil {
		return err
	}
	if err := runtime.Start(ctx, c.Site, kubelets...); err != nil {
		return err
	}
	if err := c.nodesReady(ctx, len(c.history.Nodes)+1); err != nil {
		return err
	}
	if c.about.Components {
		if err := c.startComponentsOf(ctx, c.joins, false); err != nil {
			return err
		}
	}
	return c.idle(ctx, c.joining.To, "the first minute of "+c.joins+" lasts")
}
