package hub

import (
	"path/filepath"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/trust"
)

// buildTrust makes what knows the authorities of the pool: the file that was given, and what cloud and pool say since.
func (h *Hub) buildTrust() error {
	c := trust.Config{
		Pool: h.NodePoolName, Dir: filepath.Join(h.DataDir, "pki"), Beside: h.EnrolCoordinatorDir, Retrust: h.retrust,
		Time: h.time, Logger: h.Logger,
	}
	if h.given(poolCA) {
		file, err := h.reload.Bundle(inEtc(poolCA), h.etc(poolCA))
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

// board is what the authority of the pool has signed.
func (h *Hub) board() bulletin.Board {
	return bulletin.Board{h.trusted.Document, h.denied.Document, h.directory.Document}
}

// buildNotices makes this hub's part in what the pool holds in common.
func (h *Hub) buildNotices() {
	h.poolDoor.Notices = pooldoor.NewNotices(pooldoor.NoticesConfig{
		Pool: h.NodePoolName, Node: h.NodeName, Trusted: h.trusted, Board: h.board(), Coordinator: h.coordinator,
		AsHub: h.cloud.Way(uplink.ClassControl, uplink.AsHub), AsNode: h.asks(), Certificates: h.certificates, Clock: h.clock,
		Follows: func() bool { return h.pool.Snapshot().Role == role.Follower }, Logger: h.Logger,
	})
}
