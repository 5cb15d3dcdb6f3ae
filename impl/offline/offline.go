package offline

import (
	"cmp"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

// Config is what an Offline is made of.
type Config struct {
	// Store keeps what passes. Its owner opens, runs and closes it.
	Store *store.Store
	// Overlay is what this node has written since the cloud was away. Default: nothing.
	Overlay Overlay
	// Corrections are laid over what is read beside that. Default: none.
	Corrections func() Corrections
	// Shown is told of each object that a watch has shown whole, as protobuf, when the store has it. Default: nobody is.
	Shown func(store.Resource, *wire.Object)
	// Clock is for tests. Default the real one.
	Clock clock.WithTickerAndDelayedExecution
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// nothing is the Overlay of a node that writes nothing.
type nothing struct{}

func (nothing) Overlay(_ store.Resource, _ store.Form, o *wire.Object) *wire.Object { return o }
func (nothing) Left() uint64                                                        { return 0 }

// Offline is both halves: what records, and what answers.
type Offline struct {
	*Recorder
	*Server
	prometheus.Collector
}

// New returns an Offline.
func New(c Config) *Offline {
	c.Overlay, c.Logger = cmp.Or[Overlay](c.Overlay, nothing{}), cmp.Or(c.Logger, slog.Default())
	c.Clock = cmp.Or[clock.WithTickerAndDelayedExecution](c.Clock, clock.RealClock{})
	if c.Shown == nil {
		c.Shown = func(store.Resource, *wire.Object) {}
	}
	count := newCounters()
	if c.Corrections == nil {
		c.Corrections = func() Corrections { return None{} }
	}
	return &Offline{
		Recorder: newRecorder(c.Store, c.Clock, c.Logger, count, c.Shown),
		Server: &Server{
			store: c.Store, overlay: c.Overlay, corrections: c.Corrections, clock: c.Clock, logger: c.Logger, count: count,
		},
		Collector: count,
	}
}
