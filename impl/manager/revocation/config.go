package revocation

import (
	"context"
	"log/slog"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/pki"
)

// Config of a Revoker. All fields are required.
type Config struct {
	Client    client.Client                                                   // lists Nodes from a cache, and writes
	Reader    client.Reader                                                   // not from a cache
	Authority func(ctx context.Context, pool string) (*pki.Succession, error) // nil without an error: the pool has none
	Events    events.EventRecorder
	Clock     clock.PassiveClock
	Metrics   *Metrics
	Log       *slog.Logger
}
