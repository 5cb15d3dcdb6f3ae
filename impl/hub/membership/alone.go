package membership

import (
	"context"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/role"
)

// Alone is the part of a hub that has no pool: it feeds its relays from the cloud.
type Alone struct {
	*Member
	Sources *relayed.Sources
}

// Run feeds what there is, and goes on so until ctx ends.
func (a Alone) Run(ctx context.Context, _ func() bool) error {
	for {
		a.Sources.Alone()
		select {
		case <-ctx.Done():
			return nil
		case <-a.poke:
		}
	}
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

// Follow does nothing: nobody feeds a pool that there is not.
func (Alone) Follow(role.Designation, []coordinator.Server) {}
