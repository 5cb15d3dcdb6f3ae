package hub

import (
	"context"
	"path/filepath"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/overlay"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source/hop"
)

// inPool is what a hub is in its pool. All but pool are nil without one.
type inPool struct {
	pool       pool
	poolDoor   *pooldoor.Door
	course     *membership.Course
	rollCall   *beat.RollCall
	reporter   *beat.Reporter
	forwarding *beat.Forwarding
	prober     *membership.Prober // of the ways to where it is shared
	overlay    *overlay.Overlay
}

// pool is the hub's part in its pool, if it has one: a *membership.Pool, or membership.Alone.
type pool interface {
	Run(ctx context.Context, told func() bool) error // told: that ctx ends is no failure
	Cause() string
	Seen() beat.InPool
	Renew()                     // follows a change of credentials
	Close()                     // gives back connections on which nothing runs, after Run
	Status() *membership.Status // nil: there is no pool
	Follow(role.Designation, []coordinator.Server)
}

// join makes the hub's part in its pool.
func join(self *membership.Member, m *machine, t told, c *credentials, l links, s *shared, o *own, a alone) inPool {
	if t.directory == nil {
		return inPool{pool: membership.Alone{Member: self, Sources: s.sources}}
	}
	p := inPool{course: membership.NewCourse(membership.CourseConfig{
		Directory: t.directory, Leads: self.Leads, Clock: m.clock, Logger: m.Logger,
	})}
	p.openDoor(self, m, t, c, l, s, o, a)
	p.call(m, t, c, l)
	p.prober = membership.NewProber(membership.ProberConfig{
		Node: m.NodeName, Coordinator: l.coordinator, Role: func() role.Role { return self.Snapshot().Role },
		Told: l.coordinator.Told, Clock: m.clock, Logger: m.Logger,
	})
	p.overlay = overlay.New(overlay.Config{
		Node: m.NodeName, Pool: m.NodePoolName, Dir: m.DataDir, Ways: p.poolDoor.Moved(l.coordinator),
		Boot: process.BootID(m.etc(bootID), process.BootIDFile), Statuses: a.shelter.Writes.PodStatuses,
		Pods: a.shelter.Writes.Pods, Cert: c.member, Verify: p.poolDoor.Hub, Away: l.cloud.IsAway, Unknown: l.cloud.Unknown,
		Relay: s.sources.Relay, Now: m.time.Now, Clock: m.clock, Logger: m.Logger,
	})
	l.cloud.Follow(p.overlay.Look)
	a.shelter.Lay(p.overlay)
	p.pool = membership.New(self, membership.Config{
		IdentityFile: m.identityFile(), Coordinator: l.coordinator, Policy: m.policy(), Cloud: l.cloud, Sources: s.sources,
		Idle: s.scope.Idle, Read: p.poolDoor.Read, Contradicted: counted(m.metrics.contradictions), Desk: p.poolDoor.Desk,
		Discovery: l.discovery, Forwarding: p.forwarding, Clock: m.clock, Logger: m.Logger,
		Mirror: beat.NewMirror(beat.MirrorConfig{
			Coordinator: l.coordinator, Node: m.NodeName, Timeout: m.limit(), Clock: m.clock, Logger: m.Logger,
			Count: counted(m.metrics.mirrored),
		}),
	})
	p.follow(m, t.directory.Now()) // what was told before a restart counts above flags
	c.member.Follow(p.pool.Renew)
	return p
}

// follow goes to where an entry says that the pool is asked.
func (p *inPool) follow(m *machine, e directory.Entry) {
	p.pool.Follow(pooldoor.Designate(m.NodeName, e))
}

// openDoor makes the port for the pool, and what the hub holds in common with it.
func (p *inPool) openDoor(self *membership.Member, m *machine, t told, c *credentials, l links, s *shared, o *own,
	a alone) {
	desk := pooldoor.NewDesk(pooldoor.NewStanding(m.clock), lease.NewNodes(m.clock), m.clock)
	shown := hop.NewServer(m.NodeName, s.sources.Relays, m.clock)
	shown.Scope = s.scope
	shown.Vouch = func(r *relay.Relay) bool { return desk.Standing.Vouch(r, m.maxAge()) }
	d := &pooldoor.Door{Config: pooldoor.Config{
		Server: shown, Node: m.NodeName, Pool: m.NodePoolName, Coordinators: p.course.Coordinators,
		Roots: t.trusted, Denied: t.denied, Cert: c.member, Late: l.late, Clock: m.clock, Desk: desk,
	}}
	d.Desk.Handle(d.ServeMux)
	d.Handle(contract.DocumentsPath, l.discovery.Show(a.judge.Keys))
	board := t.board()
	board.Serve(d.Handle)
	if d.Listener = m.atPool; m.PoolAddress == contract.PoolAddressReverse {
		reverse := hop.NewListener(l.coordinator.Waits, m.clock, m.Logger)
		d.Listener, m.opened = reverse, append(m.opened, func() { _ = reverse.Close() })
	}
	d.Notices = pooldoor.NewNotices(pooldoor.NoticesConfig{
		Pool: m.NodePoolName, Node: m.NodeName, Trusted: t.trusted, Board: board, Coordinator: l.coordinator,
		AsHub: l.cloud.Way(uplink.ClassControl, uplink.AsHub), AsNode: l.cloud.Way(uplink.ClassNode, uplink.AsNode),
		Certificates: func() []pooldoor.Certificate { return c.certificates(o.serving.cert) }, Clock: m.clock,
		Follows: self.Follows, Logger: m.Logger,
	})
	p.poolDoor = d
}

// call makes what leaves heartbeats of this node to its pool, and what a leader does with those of all: it reports and
// forwards them. Only a leader needs the certificate for that.
func (p *inPool) call(m *machine, t told, c *credentials, l links) {
	ways := &pooldoor.RollCall{Coordinator: l.coordinator, Desk: p.poolDoor.Desk, Timeout: heartbeat.Withdraw}
	p.rollCall = beat.NewRollCall(beat.RollCallConfig{
		Node: m.NodeName, Pool: m.NodePoolName, Desk: ways, Trusted: t.trusted.Speakers,
		Confirm: p.poolDoor.Notices.Confirm, Clock: m.clock, Logger: m.Logger,
	})
	reporter := beat.NewReporter(beat.ReporterConfig{
		Pool: m.NodePoolName, Cloud: l.cloud.Urgent(uplink.AsForwarder), Desks: ways, Trusted: t.trusted.Speakers,
		Period: p.rollCall.Period, Clock: m.clock, Logger: m.Logger, Count: counted(m.metrics.reports),
	})
	p.reporter = reporter
	p.forwarding = beat.NewForwarding(beat.ForwardingConfig{
		Cloud: l.cloud.Urgent(uplink.AsForwarder), Coordinator: l.coordinator, Own: p.poolDoor.Desk.Leases,
		Timeout: m.limit(), Clock: m.clock, Logger: m.Logger,
		Count: func(step, outcome string) { m.metrics.forwards.WithLabelValues(step, outcome).Inc() },
		Leads: func(yes bool) {
			c.forward.Want(yes)
			reporter.Lead(yes)
		},
	})
	c.forward.Follow(p.forwarding.Look)
}

// wantBeside asks for the certificates of the coordinator while the pool is told that one is to be on this node.
func (c *credentials) wantBeside(node string, told directory.Entry) {
	_, here := told.Placed(node)
	for _, k := range c.beside {
		k.Want(here && (k.Identity.Kind == pki.Coordinator || len(told.Replicas) > 1))
	}
}

// identityFile keeps by what name the hub leads, for the next process.
func (s *settings) identityFile() string { return filepath.Join(s.DataDir, "identity") }
