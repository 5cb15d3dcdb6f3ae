package virtual

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

const (
	requestTimeout = 2 * time.Second // of one request to the coordinator
	lastWords      = 2 * time.Second // of a hub that stops
	leaderLook     = 500 * time.Millisecond
	leasesRetry    = 200 * time.Millisecond
	maxLeasesRetry = 5 * time.Second
	leaderFresh    = watchTimeout * 5 / 2
)

// Hub is weir-hub: a real role machine and a real relay, and between them the steps of the hub's pool, feeders and feed.
type Hub struct {
	process
	pool                   *Pool
	toCloud, toCoordinator *link
	fromCoordinator        *link         // the same wire, over which the coordinator asks
	skew                   time.Duration // of its wall clock
	saved                  saved
	clients                []*Client

	machine            *role.Machine
	server             *server
	feeder             *feeder
	lead               *lead
	cloud, coordinator *health
	out                role.Output
	stop               bool
	have               bool
	booted             time.Duration
	wakes              int
	leases             *stream
}

// boot starts it, with or without what its relay held.
func (h *Hub) boot(state bool) {
	h.start()
	if !state {
		h.saved = saved{}
	}
	c := h.pool.role
	c.Identity = fmt.Sprintf("%s_%d", h.name, h.life)
	if state && h.life > 1 {
		c.Former = fmt.Sprintf("%s_%d", h.name, h.life-1)
	}
	c.Seed = h.loop.rng.Uint64()
	m, err := role.New(c)
	if err != nil {
		panic(err)
	}
	h.machine, h.out, h.stop, h.booted = m, role.Output{}, false, h.loop.Now()
	h.server = newServer(h.loop)
	h.saved.restore(h.server)
	h.have = h.server.Status().Synced
	h.pool.judge.fresh(h.name)
	h.feeder = &feeder{process: &h.process, pool: h.pool, server: h.server, backoff: firstBackoff, trace: h.trace, took: h.took}
	h.lead = &lead{h: h, since: h.loop.Now()}
	h.cloud = &health{h: h, l: h.toCloud, changed: func() { h.step(role.Input{}) }}
	h.coordinator = &health{h: h, l: h.toCoordinator, changed: func() { h.step(role.Input{}) }}
	h.cloud.probe()
	h.coordinator.probe()
	h.watchLeases(leasesRetry)
	h.keep()
	h.look()
	h.step(role.Input{})
	for _, c := range h.clients {
		c.server(h)
	}
}

func (h *Hub) trace(format string, args ...any) { h.pool.trace(h.name, format, args...) }

// now is the machine's clock.
func (h *Hub) now() time.Duration { return h.loop.Now() - h.booted }

func (h *Hub) snapshot() role.Snapshot { return h.out.Snapshot }

func (h *Hub) keep() {
	h.after(savePeriod, func() {
		h.saved.keep(h.server)
		h.keep()
	})
}

// look is how often a leader looks whether its streams are fresh.
func (h *Hub) look() {
	h.after(leaderLook, func() {
		if h.snapshot().Role == role.Leader {
			h.step(role.Input{})
		}
		h.look()
	})
}

// step steps the machine with what is observed now, and does what it says.
func (h *Hub) step(in role.Input) {
	if h.out.Snapshot.Done {
		return
	}
	was := h.snapshot()
	h.have = h.have || h.server.Status().Synced
	in.Now, in.Coordinator, in.Cloud = h.now(), h.coordinator.ok, h.cloud.ok
	in.Have, in.Stop = h.have, h.stop
	in.Fresh, in.Unable = h.lead.look()
	h.out = h.machine.Step(in)
	s := h.out.Snapshot
	if s.Role != was.Role {
		h.trace("%v: %s", s.Role, s.Reason)
	}
	if s.Ready != was.Ready {
		h.trace("ready=%t", s.Ready)
	}
	if s.Source != was.Source {
		h.trace("fed from %v", s.Source)
		h.feeder.use(h.at(s.Source))
	}
	for _, a := range h.out.Actions {
		switch a.Kind {
		case role.Feed:
			h.lead.begin(a.Term)
		case role.StopFeed:
			h.lead.end()
		default:
			h.request(a)
		}
	}
	h.wakes++
	wakes := h.wakes
	h.after(max(h.out.Wake-h.now(), time.Millisecond), func() {
		if h.wakes == wakes {
			h.step(role.Input{})
		}
	})
	h.pool.judge.stepped(h)
	if s.Done {
		h.pool.kill(h)
	}
}

// request does one of the machine's requests to the coordinator.
func (h *Hub) request(a role.Action) {
	r := role.Result{Kind: a.Kind, Sent: h.now()}
	c := h.pool.coord
	serve := func() {
		switch a.Kind {
		case role.ReadElection:
			r.Lease = c.leases.read(contract.ElectionLease)
		case role.ReadSync:
			r.Lease = c.leases.read(contract.InformerSync)
		case role.RenewSync:
			r.Lease, r.Outcome = c.leases.write(contract.InformerSync, h.name, a.Lease, false, h.wall())
		case role.Acquire, role.Renew, role.Release:
			r.Lease, r.Outcome = c.leases.write(contract.ElectionLease, h.name, a.Lease, a.Kind == role.Acquire, h.wall())
		case role.ReadStatus:
			r.Ready = c.ready()
		}
	}
	done := func(err error) {
		if err != nil {
			r.Outcome = role.Failed
			h.coordinator.kick()
		}
		if a.Kind == role.Acquire || r.Outcome != role.OK {
			h.trace("%v: %v", a.Kind, r.Outcome)
		}
		answer := r // a late serve must not change it
		h.step(role.Input{Result: &answer})
	}
	h.toCoordinator.ask(requestTimeout, serve, func(err error) {
		if err != nil || a.Kind != role.Acquire || r.Outcome != role.OK {
			done(err)
			return
		}
		h.toCoordinator.ask(requestTimeout, func() { r.Incarnation = c.leases.election.Fence.Incarnation }, done)
	})
}

func (h *Hub) wall() time.Time { return began.Add(h.loop.Now() + h.skew) }

// watchLeases watches the pool's Leases, again and again.
func (h *Hub) watchLeases(retry time.Duration) {
	opened := h.loop.Now()
	h.leases = h.toCoordinator.openStream(func(s *stream) {
		stop := h.pool.coord.leases.watch(func(name string, r role.Record) {
			s.send(down, func() {
				if name == contract.ElectionLease {
					h.step(role.Input{Election: &r})
				} else {
					h.step(role.Input{Sync: &r})
				}
			})
		})
		s.broken[up] = s.l.server.in(stop)
	}, func(error) {
		if h.loop.Now()-opened > maxLeasesRetry {
			retry = leasesRetry
		}
		h.coordinator.kick()
		h.after(retry, func() { h.watchLeases(min(2*retry, maxLeasesRetry)) })
	})
}

// at is the place of a source.
func (h *Hub) at(s role.Source) *origin {
	switch s {
	case role.Cloud:
		return &origin{name: s.String(), l: h.toCloud}
	case role.Coordinator:
		c := h.pool.coord
		return &origin{name: s.String(), l: h.toCoordinator, relay: func() *server { return c.server }, p: &c.process}
	}
	return nil
}

// took notes that the relay took something.
func (h *Hub) took() {
	h.pool.judge.reached(h.name, h.server)
	h.server.changed()
	if !h.have {
		h.step(role.Input{})
	}
}
