package hub

import (
	"context"
	"path/filepath"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// buildDirectory makes what knows what the pool is told about itself: flags, and what cloud and pool say since.
func (h *Hub) buildDirectory() {
	c := directory.Config{Pool: h.NodePoolName, File: filepath.Join(h.DataDir, "directory"), Clock: h.clock, Logger: h.Logger}
	for _, u := range h.coordinators {
		c.Flags.Coordinators = append(c.Flags.Coordinators, u.String())
	}
	for _, r := range h.resources {
		c.Flags.Scope = append(c.Flags.Scope, directory.SharedOf(r))
	}
	if c.Flags.Leaders = h.leaders; len(h.leaders) > 0 {
		c.Flags.Mode, c.Flags.Connected = contract.ModeLeaderHubs, true
	}
	h.directory = directory.New(c)
	h.metrics.registry.MustRegister(h.directory)
}

// followDirectory reads it in the cloud until ctx ends.
func (h *Hub) followDirectory(ctx context.Context) error {
	h.directory.Follow(ctx, h.cloud.Way(uplink.ClassControl, uplink.AsHub))
	return nil
}

// askDirectory asks the coordinator for it while the cloud does not tell, until ctx ends.
func (h *Hub) askDirectory(ctx context.Context) error {
	directory.Keep(ctx, h.clock, false, func(ctx context.Context) error {
		r, asking, cancel := h.coordinator.With(ctx)
		defer cancel()
		err := h.directory.Ask(asking, r.Transport, r.URL, false)
		if err != nil {
			h.Logger.Debug("the coordinator does not say what the pool is told about itself", "err", err)
		}
		return err
	})
	return nil
}
