package coordinator

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/lead"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
)

// buildRelays makes the relays that the coordinator begins with: of what the pool was last told to share, else of
// flags.
func (c *Coordinator) buildRelays() error {
	c.buildTold()
	for _, res := range scope.First(scope.Of(c.told.Now()), c.set.always, c.set.Linger, c.keptIn()) {
		r, err := c.newRelay(res, false)
		if err != nil {
			return err
		}
		c.relays.Add(r)
	}
	return nil
}

// keptIn is the folder of what relays hold.
func (c *Coordinator) keptIn() string { return filepath.Join(c.dir.Path(), "relays") }

// newRelay makes a relay. late: others are served already.
func (c *Coordinator) newRelay(res relay.Resource, late bool) (*relay.Relay, error) {
	return relay.New(relay.Config{
		Resource: res, RingBytes: c.set.RingBytes, MaxBytes: c.set.RelayMaxBytes, RingAge: c.set.RingAge, Late: late,
		Clock: c.set.Clock, Logger: c.set.Logger,
	})
}

// relayed reports whether a resource is read-only here, since it is a copy.
func (c *Coordinator) relayed(r authz.GroupResource) bool {
	return slices.ContainsFunc(c.told.Now().Scope, func(s directory.Shared) bool {
		return s.Group == r.Group && s.Resource == r.Resource
	}) || slices.ContainsFunc(c.relays.All(), func(held *relay.Relay) bool {
		return held.Resource().Group == r.Group && held.Resource().Resource == r.Resource
	})
}

// sharing is the relays of a coordinator as its scope has them.
type sharing struct {
	*Coordinator
	puller *lead.Puller
}

// All implements scope.Relays.
func (s sharing) All() []*relay.Relay { return s.relays.All() }

// Join implements scope.Relays.
func (s sharing) Join(res relay.Resource) (*relay.Relay, error) {
	r, err := s.newRelay(res, true)
	if err != nil {
		return nil, err
	}
	s.kept.Add(r)
	s.relays.Add(r)
	s.listed.Update()
	return r, nil
}

// Feed implements scope.Relays.
func (s sharing) Feed(ctx context.Context, r *relay.Relay) error { return s.puller.Feed(ctx, r) }

// Leave implements scope.Relays.
func (s sharing) Leave(r *relay.Relay) {
	s.relays.Remove(r)
	s.listed.Update()
}

// Left implements scope.Relays.
func (s sharing) Left(r *relay.Relay) { s.kept.Remove(r) }
