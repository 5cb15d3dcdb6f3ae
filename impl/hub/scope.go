package hub

import (
	"path/filepath"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
)

// atFirst are the resources that the hub begins with: what was read here before the restart, of what the pool was last
// told to share, or else of what flags name.
func (h *Hub) atFirst() []relay.Resource {
	all := h.resources
	if h.directory != nil {
		all = scope.Of(h.directory.Now())
	}
	return scope.First(all, h.always, h.Linger, h.keptIn())
}

// keptIn is the folder of what relays hold.
func (h *Hub) keptIn() string { return filepath.Join(h.DataDir, "relays") }

// buildScope makes what follows another scope of the pool.
func (h *Hub) buildScope() error {
	h.scope = scope.New(scope.Config{
		Relays: relayed.Relays{
			Sources: h.sources, Kept: h.kept, Changed: func() { h.pool.Changed() },
			Forget: func(r *relay.Relay) { h.door.Consistency.Forget(r) },
			Make:   func(res relay.Resource) (*relayed.Feeder, error) { return h.feeder(res, true) },
		},
		Directory: h.directory, Fixed: directory.SharedAll(h.resources), Always: h.always, Linger: h.Linger,
		Open:  h.reads.Open,
		Holds: func() bool { return h.cloud.Reach() == member.CloudAway },
		Find:  scope.Discovery{Cloud: h.cloud.Way(uplink.ClassControl, uplink.AsHub)}.Find,
		Clock: h.clock, Logger: h.Logger,
	})
	return nil
}
