package hub

import (
	"context"
	"path/filepath"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/trust"
)

// buildTrust makes what knows the authorities of the pool: the file that was given, and what cloud and pool say since.
func (h *Hub) buildTrust() error {
	c := trust.Config{Pool: h.NodePoolName, Dir: filepath.Join(h.DataDir, "pki"), Beside: h.EnrolCoordinatorDir, Changed: h.retrust, Logger: h.Logger}
	if h.CoordinatorCAFile != "" {
		file, err := h.reload.Bundle("--coordinator-ca-file", h.CoordinatorCAFile)
		if err != nil {
			return err
		}
		c.First = file.List
	}
	h.trusted = trust.New(c)
	h.metrics.registry.MustRegister(h.trusted)
	return nil
}

// retrust follows a change of whom the pool trusts. Streams go on; what is opened from now on is judged by it.
func (h *Hub) retrust() {
	h.pool.Renew()
	for _, k := range h.keepers {
		k.Look()
	}
}

// followTrust reads the authorities of the pool in the cloud until ctx ends.
func (h *Hub) followTrust(ctx context.Context) error {
	h.trusted.Follow(ctx, h.cloud.Way(uplink.ClassControl, uplink.AsHub), h.clock)
	return nil
}

// shareTrust lets this hub and the replica in use know the same authorities, whoever heard of them first, until ctx ends.
func (h *Hub) shareTrust(ctx context.Context) error {
	h.trusted.Share(ctx, h.clock, func() {
		r, asking, cancel := h.coordinator.With(ctx)
		defer cancel()
		if err := h.trusted.Exchange(asking, r.Transport, r.URL.JoinPath(contract.TrustPath)); err != nil {
			h.Logger.Debug("the coordinator does not take or show the authorities of the pool", "err", err)
		}
	})
	return nil
}
