package beat

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// Cloud sends small requests to the cloud: an uplink.Urgent, or the model of one in a simulation. It is safe for
// concurrent use.
type Cloud interface {
	Able() bool      // there is a certificate to send anything with
	Reachable() bool // a server is worth a try
	// Send blocks until a server answers, heartbeat.Attempt at most. An answer that refuses the request is no error.
	Send(ctx context.Context, m uplink.Message) (*uplink.Answer, error)
}

// Coordinator is the way to the coordinator of the pool: a coordinator.Client, or the model of one in a simulation. It
// is safe for concurrent use.
type Coordinator interface {
	// Do sends a request to the replica in use. The status code is returned with errors about it.
	Do(ctx context.Context, method, uri string, in, out any) (code int, err error)
	// With returns the replica in use and a context that ends when another one is used.
	With(ctx context.Context) (*coordinator.Replica, context.Context, context.CancelFunc)
	// SetAddress sets in a Lease where this hub shows its relays, or removes that.
	SetAddress(l *coordinationv1.Lease)
}
