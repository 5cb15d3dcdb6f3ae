package relayed

import (
	"context"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/snapshot"
)

// Relays are those of a hub, as its scope names them (package scope). All fields are needed.
type Relays struct {
	Sources *Sources
	Kept    *snapshot.Snapshots
	Changed func()             // there are others
	Forget  func(*relay.Relay) // one is neither fed nor read any more
}

var _ scope.Relays = Relays{}

// All implements scope.Relays.
func (s Relays) All() []*relay.Relay { return s.Sources.Relays() }

// Join implements scope.Relays.
func (s Relays) Join(res relay.Resource) (*relay.Relay, error) {
	f, err := s.Sources.Make(res, true)
	if err != nil {
		return nil, err
	}
	s.Kept.Add(f.Relay)
	s.Sources.Add(f)
	s.Changed()
	return f.Relay, nil
}

// Feed implements scope.Relays.
func (s Relays) Feed(ctx context.Context, r *relay.Relay) error {
	if f := s.Sources.Of(r); f != nil {
		return f.Run(ctx)
	}
	return nil
}

// Leave implements scope.Relays.
func (s Relays) Leave(r *relay.Relay) {
	if f := s.Sources.Of(r); f != nil {
		s.Sources.Remove(f)
	}
	s.Changed()
}

// Left implements scope.Relays.
func (s Relays) Left(r *relay.Relay) {
	s.Kept.Remove(r)
	s.Forget(r)
}
