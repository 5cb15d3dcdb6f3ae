package lead

import (
	"context"
	"log/slog"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Leases are those that the coordinator keeps.
type Leases interface {
	// Free takes the election Lease from a leader, unless it has changed hands.
	Free(context.Context, member.Leader) error
	// Hubs are the addresses that hubs told, by node.
	Hubs(context.Context) map[string]string
}

// Replicas are several of which one reads the leader.
type Replicas interface {
	// Reads is the replica that does, as far as is known here. It has no upstream if it is this one, and no name if there
	// is none yet.
	Reads() (name string, up *hop.Upstream)
	// Mine tells by the word of a majority whether it is this one.
	Mine(context.Context) (bool, error)
	// Claim says that it is this one from now on.
	Claim(context.Context, contract.Term) error
}

// PullConfig is what a Puller is made of.
type PullConfig struct {
	Relays   func() []*relay.Relay
	Fence    *member.Fence // its Moved is to call Puller.Moved
	Bars     *Bars
	Line     func(node, address string) *hop.Line
	Leases   Leases
	Replicas Replicas                 // nil: there is one
	Unready  func(*relay.Relay) error // why a relay is not ready; nil: it is
	Majority func() error             // why nothing can be decided; nil: it can
	// what else is read from the one that is, until the context ends; may be nil.
	Beside   func(context.Context, *hop.Upstream)
	Freed    func(reason string)         // counts: the Lease was taken from a leader
	Refilled func(resource, node string) // counts: a relay was moved forward to what the hub of a node holds
	Clock    clock.WithTicker
	Logger   *slog.Logger
}
