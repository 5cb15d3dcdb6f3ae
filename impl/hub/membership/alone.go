package membership

import (
	"context"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

// Alone is the part of a hub that has no pool: it feeds its relays from the cloud.
type Alone struct{ Sources *relayed.Sources }

// Run blocks until ctx ends.
func (a Alone) Run(ctx context.Context, _ func() bool) error {
	a.Sources.Alone()
	<-ctx.Done()
	return nil
}

// Snapshot tells why there is no role.
func (Alone) Snapshot() role.Snapshot {
	return role.Snapshot{Role: role.Pending, Reason: "no coordinator is configured", Source: role.Cloud}
}

// Cause is that there is no pool.
func (Alone) Cause() string { return digest.Unconfigured }

// Renew has no connections.
func (Alone) Renew() {}

// Close has none either.
func (Alone) Close() {}

// Seen is nowhere.
func (Alone) Seen() beat.InPool { return beat.Alone{} }

// Status is nil: there is no pool.
func (Alone) Status() *Status { return nil }

// Changed feeds what there is now.
func (a Alone) Changed() { a.Sources.Alone() }

// Denied does nothing: the cloud alone is asked.
func (Alone) Denied(string) {}

// Contradict does nothing: nothing comes from a pool.
func (Alone) Contradict(string, error) {}

// Follow does nothing: nobody feeds a pool that there is not.
func (Alone) Follow(role.Designation, []coordinator.Server) {}

// Vouch vouches for nothing.
func (Alone) Vouch(*relay.Relay) bool { return false }
