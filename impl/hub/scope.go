package hub

import (
	"context"

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
	cloud := h.cloud.Way(uplink.ClassControl, uplink.AsHub)
	h.scope = scope.New(scope.Config{
		Relays: shared{h}, Directory: h.directory, Clock: h.clock, Logger: h.Logger,
		Find: scope.Discovery{Cloud: cloud}.Find,
	})
	return nil
}

// shared are the relays of a hub as its scope has them.
type shared struct{ *Hub }

// All implements scope.Relays.
func (s shared) All() []*relay.Relay { return s.sources.Relays() }

// Join implements scope.Relays.
func (s shared) Join(res relay.Resource) (*relay.Relay, error) {
	f, err := s.feeder(res, true)
	if err != nil {
		return nil, err
	}
	s.kept.Add(f.Relay)
	s.sources.Add(f)
	s.pool.Changed()
	return f.Relay, nil
}

// Feed implements scope.Relays.
func (s shared) Feed(ctx context.Context, r *relay.Relay) error {
	if f := s.sources.Of(r); f != nil {
		return f.Run(ctx)
	}
	return nil
}

// Leave implements scope.Relays.
func (s shared) Leave(r *relay.Relay) {
	if f := s.sources.Of(r); f != nil {
		s.sources.Remove(f)
	}
	s.pool.Changed()
}

// Left implements scope.Relays.
func (s shared) Left(r *relay.Relay) {
	s.kept.Remove(r)
	s.door.Consistency.Forget(r)
}
