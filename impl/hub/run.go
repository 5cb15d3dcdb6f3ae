package hub

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
)

// New checks a configuration, reads the credentials and what was kept, and opens the ports; Run does the rest. A hub
// that was made must be run, or closed by Close.
func New(c Config) (*Hub, error) {
	s, err := c.check()
	if err != nil {
		return nil, err
	}
	m, err := open(s)
	if err != nil {
		return nil, err
	}
	self, err := m.newMember()
	if err == nil {
		var h *Hub
		if h, err = build(self, m); err == nil {
			return h, nil
		}
	}
	m.close()
	return nil, err
}

// newMember makes the hub's member of its pool.
func (m *machine) newMember() (*membership.Member, error) {
	if !m.EnableCoordinator {
		return membership.NoMember(), nil
	}
	c := member.Config{MaxAge: m.maxAge(), Timeout: m.policy().Timeout}
	var err error
	if c.Role, err = membership.Named(m.role(""), m.NodeName, m.identityFile(), m.Logger); err != nil {
		return nil, err
	}
	return membership.NewMember(c, m.clock)
}

// build puts a hub together of its member and what the machine has. Each part is made of those before it, so it can
// call them at once. What is made later may follow what was made earlier, or give it what it goes without until then.
func build(self *membership.Member, m *machine) (*Hub, error) {
	h := &Hub{self: self, machine: m}
	var err error
	if h.told, err = openTold(m); err != nil {
		return nil, err
	}
	if h.credentials, err = openCredentials(m, h.told); err != nil {
		return nil, err
	}
	h.links = newLinks(self, m, h.told, h.credentials)
	if h.shared, err = newShared(self, m, h.told, h.credentials, h.links); err != nil {
		return nil, err
	}
	if h.own, err = openOwn(m); err != nil {
		return nil, err
	}
	if h.alone, err = openAlone(m, h.told, h.credentials, h.links, h.shared); err != nil {
		return nil, err
	}
	h.inPool = join(self, m, h.told, h.credentials, h.links, h.shared, &h.own, h.alone)
	if h.filters, err = newFilters(m, h.links, h.shared, h.overlay); err != nil {
		return nil, err
	}
	if err := h.openMirror(); err != nil {
		return nil, err
	}
	h.door = h.newDoor()
	h.cloud.Follow(h.retry)
	h.metrics.registry.MustRegister(append(slices.Concat(h.shelter.Collectors(), h.asking.Collectors(),
		h.overlay.Collectors(), h.mirror.Collectors()), state{h}, relay.NewCollector(h.sources.Relays), h.scope, h.lacks,
		h.door.Proxy.Own.Collector())...)
	return h, nil
}

// Close gives back what a hub has of its machine that is not run.
func (h *Hub) Close() { h.close() }

// Run serves until ctx ends. A leader gives back its Lease first.
func (h *Hub) Run(ctx context.Context) error {
	ended := func() bool { return ctx.Err() != nil }
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
		return h.pods.Run(serving, func(l net.Listener) error { return serve(l, h.serving.config()) })
	})
	g.Go(func() error { return door.Serve(serving, h.health, nil, h.admin(), nil, h.Logger) })
	if h.plain != nil {
		open(func() error { return serve(h.plain, nil) })
	}
	runs := []func(context.Context) error{
		h.lacks.Run, h.kept.Run, h.scope.Run, h.judge.Run, h.cloud.Run, h.door.Stalls.Run, h.door.Proxy.Own.Run, h.mirror.Run,
		func(ctx context.Context) error { return h.atCloud.Run(ctx, h.cloud.Sweep) },
		func(ctx context.Context) error { return h.reload.Run(ctx, h.renew) },
		func(ctx context.Context) error { return h.shelter.Run(ctx, doors.Wait) },
	}
	if h.poolDoor != nil {
		runs = append(runs, h.runsInPool()...)
	}
	if h.filters != nil {
		runs = append(runs, h.filters.Run)
	}
	for _, k := range h.keepers {
		runs = append(runs, func(ctx context.Context) error { return k.Run(ctx, k.by(h.cloud)) })
	}
	for _, run := range runs {
		g.Go(func() error { return run(serving) })
	}
	h.own.run(serving, g)
	g.Go(func() error {
		defer stop()
		defer h.door.Close()
		return h.pool.Run(ending, ended)
	})
	err := g.Wait()
	h.cloud.Close()
	h.pool.Close()
	h.time.Close()
	return err
}

// runsInPool is what runs beside in a hub that has a pool.
func (h *Hub) runsInPool() []func(context.Context) error {
	d := h.poolDoor
	heed := func(changed func() <-chan struct{}, do func()) func(context.Context) error {
		return func(ctx context.Context) error {
			process.Heed(ctx, changed, do)
			return nil
		}
	}
	first := true
	runs := []func(context.Context) error{
		d.Notices.Run, h.reporter.Run, h.overlay.Run, h.prober.Run, h.gate.Run, h.wayIn.Run,
		func(ctx context.Context) error { return door.Serve(ctx, d.Listener, d.TLS(), d, nil, h.Logger) },
		func(ctx context.Context) error { return beat.Overdue(ctx, h.door.Beats) },
		func(ctx context.Context) error {
			return h.course.Run(ctx, func(e directory.Entry) { h.follow(h.machine, e) })
		},
		// It may be revoked what this hub holds: then it asks for another certificate. It may be that its Node is there
		// again; if it is not, weir-manager says no.
		heed(h.denied.Changed, h.member.Look),
		// Other authorities are trusted. Streams go on; what is opened from now on is judged by these.
		heed(h.trusted.Changed, func() {
			if !first {
				h.pool.Renew()
				h.look()
			}
			first = false
		}),
	}
	if h.managesReplica() {
		runs = append(runs, heed(h.directory.Changed, func() { h.wantBeside(h.NodeName, h.directory.Now()) }))
	}
	return runs
}
