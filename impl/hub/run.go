package hub

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/standin"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/relay"
)

// New checks a configuration, reads the credentials and what was kept, and opens the ports; Run does the rest. A hub
// that was made must be run, or closed by Close.
func New(c Config) (*Hub, error) {
	s, err := c.check()
	if err != nil {
		return nil, err
	}
	h := &Hub{settings: s, clock: s.clock, metrics: newMetrics(s.NodeName, s.NodePoolName)}
	if h.clock == nil {
		h.clock = clock.RealClock{}
	}
	h.reload, h.asking = &uplink.Reloader{Clock: h.clock, Logger: s.Logger}, enrol.NewMetrics()
	h.lacks = &standin.List{Clock: h.clock, Logger: s.Logger, Files: h.reload.Failing}
	for _, build := range []func() error{
		h.listen, h.place, h.buildCloud, h.buildRelays, h.buildCoordinator, h.keep, h.buildScope, h.buildOwn, h.buildShelter,
		h.buildFilters, h.buildPool, h.buildMirror, h.buildDoor,
	} {
		if err := build(); err != nil {
			h.Close()
			return nil, err
		}
	}
	_ = h.own.pods.Open() // Run tries again, and tells
	h.metrics.registry.MustRegister(append(slices.Concat(h.shelter.Collectors(), h.asking.Collectors(),
		h.overlay.Collectors(), h.mirror.Collectors()), state{h}, relay.NewCollector(h.sources.Relays), h.scope, h.lacks,
		h.door.Proxy.Own.Collector())...)
	return h, nil
}

// listen opens the ports. A hub without that of the API is none; without another one it goes on.
func (h *Hub) listen() (err error) {
	if h.secure, err = door.Listen(h.Net, "--secure-port", h.BindAddress, h.SecurePort); err != nil {
		return err
	}
	port := func(flag, address string, port int, without string) (net.Listener, error) {
		return h.lacks.Port(flag, func() (net.Listener, error) { return door.Listen(h.Net, flag, address, port) }, without)
	}
	h.health, err = port("--health-port", h.HealthBindAddress, h.HealthPort,
		"health, metrics and status are at a port that this log names")
	if err == nil && h.health == nil {
		h.health, err = door.Listen(h.Net, "--health-port", h.HealthBindAddress, 0)
	}
	if err == nil && h.ProxyPort != 0 {
		h.plain, err = port("--proxy-port", h.BindAddress, h.ProxyPort, "there is no plain HTTP port")
	}
	if err == nil && h.EnableCoordinator && h.PoolAddress != contract.PoolAddressReverse {
		h.atPool, err = port("--pool-port", h.PoolBindAddress, h.PoolPort,
			"the node is in no pool: all that it reads comes from the cloud")
		if h.atPool == nil {
			h.EnableCoordinator, h.EnrolCoordinatorDir = false, ""
		}
	}
	return err
}

// Close gives back the ports of a hub that is not run.
func (h *Hub) Close() {
	for _, l := range []net.Listener{h.secure, h.health, h.plain, h.atPool} {
		if l != nil {
			_ = l.Close()
		}
	}
	if h.poolDoor != nil && h.poolDoor.Listener != nil {
		_ = h.poolDoor.Listener.Close()
	}
	h.own.pods.Close()
	h.mirror.Close()
	if h.kept != nil {
		h.kept.Close()
	}
	if h.store != nil {
		h.store.Close()
	}
}

// Run serves until ctx ends. A leader gives back its Lease first.
func (h *Hub) Run(ctx context.Context) error {
	told := func() bool { return ctx.Err() != nil }
	g, ending := errgroup.WithContext(ctx) // also when something fails
	// What serves goes on until the pool has been left.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	h.door.Authorizer.Start(serving)
	h.door.Consistency.Start(serving)
	var doors sync.WaitGroup
	serve := func(l net.Listener, config *tls.Config) error {
		return door.Serve(serving, l, config, h.door, h.door.Identifier.IsNode, h.Logger)
	}
	open := func(run func() error) {
		doors.Add(1)
		g.Go(func() error {
			defer doors.Done()
			return run()
		})
	}
	open(func() error { return serve(h.secure, h.serving.config()) })
	open(func() error {
		return h.own.pods.Run(serving, func(l net.Listener) error { return serve(l, h.serving.config()) })
	})
	g.Go(func() error { return door.Serve(serving, h.health, nil, h.admin(), nil, h.Logger) })
	if h.plain != nil {
		open(func() error { return serve(h.plain, nil) })
	}
	runs := []func(context.Context) error{
		h.lacks.Run, h.kept.Run, h.scope.Run, h.judge.Run, h.cloud.Run, h.atCloud.Run, h.door.Stalls.Run,
		h.door.Proxy.Own.Run, h.mirror.Run,
	}
	if d := h.poolDoor; d != nil {
		g.Go(func() error { return door.Serve(serving, d.Listener, d.TLS(), d, nil, h.Logger) })
		runs = append(runs, d.Notices.Run, h.course.Run, h.reporter.Run, h.overlay.Run, h.prober.Run, h.gate.Run, h.wayIn.Run)
		g.Go(func() error { return beat.Overdue(serving, h.door.Beats) })
		if h.managesReplica() {
			g.Go(func() error { return h.awaitReplica(serving) })
		}
		g.Go(func() error { h.heedDenylist(serving); return nil })
	}
	g.Go(func() error { return h.shelter.Run(serving, doors.Wait) })
	for _, run := range runs {
		g.Go(func() error { return run(serving) })
	}
	h.own.run(serving, g)
	if h.filters != nil {
		g.Go(func() error { return h.filters.Run(serving) })
	}
	g.Go(func() error { return h.reload.Run(serving, h.renew) })
	for _, k := range h.keepers {
		g.Go(func() error { return k.Run(serving) })
	}
	g.Go(func() error {
		defer stop()
		defer h.door.Close()
		return h.pool.Run(ending, told)
	})
	err := g.Wait()
	h.cloud.Close()
	h.pool.Close()
	h.time.Close()
	return err
}
