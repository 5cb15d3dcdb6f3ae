package hub

import (
	"github.com/weir-edge/weir/impl/hub/feeder"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
)

// atFirst are the resources that the hub begins with: those that the pool was last told to share, else those of flags.
func (h *Hub) atFirst() []relay.Resource {
	if h.directory == nil {
		return h.resources
	}
	return scope.Of(h.directory.Now())
}

// buildScope makes what follows another scope of the pool.
func (h *Hub) buildScope() error {
	h.scope = scope.New(scope.Config{
		Relays: feeder.Relays{
			Sources: h.sources, Kept: h.kept, Changed: func() { h.pool.Changed() },
			Forget: func(r *relay.Relay) { h.door.Consistency.Forget(r) },
			Make:   func(res relay.Resource) (*feeder.Feeder, error) { return h.feeder(res, true) },
		},
		Directory: h.directory, Find: scope.Discovery{Cloud: h.cloud.Way(uplink.ClassControl, uplink.AsHub)}.Find,
		Clock: h.clock, Logger: h.Logger,
	})
	return nil
}
