package hub

import (
	"context"
	"path/filepath"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/holding"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/notice"
	"github.com/weir-edge/weir/impl/pki"
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

// giveBack gives the cloud what it has forgotten and the pool knows, until ctx ends.
func (h *Hub) giveBack(ctx context.Context) error {
	notice.Returner{
		Pool: h.NodePoolName, Cloud: h.cloud.Way(uplink.ClassControl, uplink.AsHub), Clock: h.clock, Logger: h.Logger,
		Lacks: map[string]func(time.Time) []byte{contract.TrustKey: h.trusted.Lacking, contract.DenylistKey: h.denied.Lacking},
	}.Run(ctx)
	return nil
}

// tell writes on the Node what this hub holds, until ctx ends.
func (h *Hub) tell(ctx context.Context) error {
	holding.Teller{Node: h.NodeName, Cloud: h.asks(), Read: h.holds, Clock: h.clock, Logger: h.Logger}.Run(ctx)
	return nil
}

// holds is that. A trust bundle is held when the coordinator holds it, too.
func (h *Hub) holds() holding.Holding {
	all := holding.Holding{Trust: h.shared.Load(), Certificates: map[string]holding.Life{}}
	add := func(kind pki.Kind, c uplink.Certificate) {
		if now := c.Get(); now != nil && now.Leaf != nil {
			_, renews := c.(*enrol.Keeper)
			all.Certificates[string(kind)] = holding.Life{Begin: now.Leaf.NotBefore.UTC(), End: now.Leaf.NotAfter.UTC(), Renews: renews}
		}
	}
	add(pki.Hub, h.member)
	if h.atCloud.own != nil {
		add(pki.HubAtCloud, h.atCloud.own)
	}
	for _, k := range h.beside {
		add(k.Identity.Kind, k)
	}
	return all
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
		number := h.trusted.Number()
		if err := h.trusted.Exchange(asking, r.Transport, r.URL.JoinPath(contract.TrustPath)); err != nil {
			h.Logger.Debug("the coordinator does not take or show the authorities of the pool", "err", err)
		} else if h.trusted.Number() == number { // else it is looked again at once
			h.shared.Store(number)
		}
	})
	return nil
}
