package eviction

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/runtime"
)

// partStatus is what hub and coordinator say of themselves, as far as this package reads it.
type partStatus struct {
	Leader    string `json:"leader"` // of a coordinator: the node
	Resources []struct {
		Resource string `json:"resource"`
		Synced   bool   `json:"synced"`
	} `json:"resources"`
}

const statusPatience = time.Second

func (c *column) coordinators() []runtime.PartID {
	return layout.WeirPool(c.s).CoordinatorIDs()
}

// leader waits until some node leads, and returns it; without Weir it is the first node.
func (c *column) leader(ctx context.Context) (node string, err error) {
	if c.mode != runtime.Weir {
		return c.history.Nodes[0], nil
	}
	err = c.Until(ctx, readyPatience, func() (bool, string) {
		for _, id := range c.coordinators() {
			if s, err := c.status(ctx, id); err == nil && s.Leader != "" {
				node = s.Leader
				return true, ""
			}
		}
		return false, "waiting for somebody to lead"
	})
	return node, err
}

func (c *column) status(ctx context.Context, id runtime.PartID) (s partStatus, err error) {
	p, err := c.Site.Part(id)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	return s, p.Status(ctx, &s)
}

// keepControllers starts controllers again that ended, as a kubelet does with static pods: they end when they lose
// their Lease.
func (c *column) keepControllers(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	started := map[runtime.PartID]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, id := range []runtime.PartID{runtime.ControllerManager, runtime.Scheduler, runtime.Manager} {
			p, err := c.Site.Part(id)
			if err != nil {
				continue
			}
			if p.Running() {
				started[id] = true
				continue
			}
			if !started[id] {
				continue // it was not started yet
			}
			c.Note(fmt.Sprintf("%s ended (%v) and is started again", id, p.Err()))
			if err := p.Start(ctx); err != nil && ctx.Err() == nil {
				// It has to reach the apiserver to be healthy; that may be away.
				c.Note(fmt.Sprintf("%s did not start: %v", id, err))
			}
		}
	}
}
