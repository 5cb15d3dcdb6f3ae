package virtual

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

const (
	requestTimeout = 2 * time.Second // of one request to the coordinator
	lastWords      = 2 * time.Second // of a hub that stops
	pingTimeout    = 5 * time.Second
	leasesRetry    = 200 * time.Millisecond
	maxLeasesRetry = 5 * time.Second
	leaderFresh    = watchTimeout * 5 / 2
)

// Hub is weir-hub: a real member of its pool and a real relay. Between them are models of the feeder and of the wires.
type Hub struct {
	process
	pool                   *Pool
	designated             role.Designation // what it is in a pool with leader hubs
	toCloud, toCoordinator *link
	peers                  map[*Hub]*link // to the leader hubs, but this one
	fromCoordinator        *link          // the same wire, over which the coordinator asks
	skew                   time.Duration  // of its wall clock
	answer                 error          // of the cloud to what this hub asks for; nil: what it asks for
	saved                  saved
	clients                []*Client

	member             *member.Member
	server             *server
	feeder             *feeder
	idle               bool // nobody reads here: there is no relay, and server and feeder are of nothing
	lead               *leading
	cloud, coordinator *health // coordinator: or the leader hubs
	use                *Hub    // the leader hub that is read; nil: none
	shown              string  // its name, if it said that what it shows is fresh
	stands             contract.Standing
	out                struct{ role.Snapshot } // of the last step
	stop               bool
	left               string // the identity that the last process which led has left on disk
	against            string // the node that the cloud is said to contradict; "": none
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
	if !state {
		h.left = ""
	}
	c.Former, c.Seed = h.left, h.loop.rng.Uint64()
	m, err := member.New(member.Config{Role: c, MaxAge: leaderFresh, Timeout: requestTimeout}, began.Add(h.loop.Now()))
	if err != nil {
		panic(err)
	}
	h.member, h.stop, h.booted, h.against = m, false, h.loop.Now(), ""
	h.out.Snapshot = m.Snapshot()
	h.relays(false)
	h.saved.restore(h.server)
	h.lead = &leading{h: h, since: h.loop.Now()}
	look := func() { h.step(member.Observation{}) }
	ask := func(l *link) func(time.Duration, func(error)) {
		return func(limit time.Duration, done func(error)) { l.ask(limit, func() {}, done) }
	}
	h.cloud = &health{h: h, ask: ask(h.toCloud), policy: probing, changed: look}
	h.coordinator = &health{h: h, ask: ask(h.toCoordinator), policy: probing.Near(), changed: look}
	h.use, h.shown, h.stands = nil, "", contract.Standing{}
	if h.designated != role.Elected {
		h.coordinator.ask = h.survey
	}
	h.cloud.probe()
	h.coordinator.probe()
	if h.designated == role.Elected {
		h.watchLeases(leasesRetry)
	}
	h.keep()
	h.ping()
	look()
	for _, c := range h.clients {
		c.server(h)
	}
}

// relays makes the relay, and what feeds it.
func (h *Hub) relays(late bool) {
	h.server, h.idle = newServer(h.loop, late), false
	h.pool.judge.fresh(h.name)
	h.feeder = &feeder{
		process: &h.process, pool: h.pool, server: h.server, trace: h.trace, took: h.took, hub: h,
	}
}

// rest gives the relay up, as package scope does when nobody has read it for a time, if nobody reads it.
func (h *Hub) rest() {
	read := slices.ContainsFunc(h.pool.clients, func(c *Client) bool { return c.hub == h })
	if !h.up || h.frozen || h.idle || read || len(h.server.taps) > 0 || h.server.Status().Joins {
		return
	}
	h.trace("nobody reads")
	h.feeder.use(nil)
	h.relays(true)
	h.idle, h.saved = true, saved{}
	h.step(member.Observation{})
}

// read is what is read here. It begins when somebody comes.
func (h *Hub) read() *server {
	if h.idle && h.up {
		h.idle = false
		h.trace("somebody reads")
		h.after(0, func() { h.step(member.Observation{}) })
	}
	return h.server
}

func (h *Hub) trace(format string, args ...any) { h.pool.trace(h.name, format, args...) }

// now is the machine's clock.
func (h *Hub) now() time.Duration { return h.loop.Now() - h.booted }

func (h *Hub) snapshot() role.Snapshot { return h.out.Snapshot }

func (h *Hub) keep() {
	h.after(savePeriod, func() {
		if !h.idle {
			h.saved.keep(h.server)
		}
		h.keep()
	})
}

// ping asks over the streams from the cloud whether it is there, when nothing came for half of the time after which a
// leader calls it silent.
func (h *Hub) ping() {
	h.after(member.Silent/2, func() {
		if read := h.toCloud.read; len(h.toCloud.streams) > 0 {
			h.toCloud.ask(pingTimeout, func() {}, func(err error) {
				if err == nil {
					h.toCloud.read = read + 1
				}
			})
		}
		h.ping()
	})
}

// step steps the member with what is observed now, and does what it says.
func (h *Hub) step(o member.Observation) {
	if h.out.Done {
		return
	}
	was := h.snapshot()
	h.observe(&o)
	effects := h.member.Step(o)
	h.out.Snapshot = h.member.Snapshot()
	s := h.snapshot()
	if s.Role != was.Role {
		h.trace("%v: %s", s.Role, s.Reason)
	}
	if s.Ready != was.Ready {
		h.trace("ready=%t", s.Ready)
	}
	if s.Source != was.Source {
		h.trace("fed from %v", s.Source)
	}
	h.pool.given(o)
	h.pool.given(h.member.Input())
	for _, e := range effects {
		h.do(e)
	}
	h.pool.judge.stepped(h)
	if s.Done {
		h.pool.kill(h)
	}
}

// observe fills in the present state of what the member sees.
func (h *Hub) observe(o *member.Observation) {
	o.Now, o.Pool = h.server.clock.Now(), h.coordinator.OK
	o.Cloud = member.Cloud{Healthy: h.cloud.OK, Heard: began.Add(h.toCloud.heard), Read: h.toCloud.read}
	o.Designated, o.Server = h.designated, h.pool.coord.name
	if h.use != nil {
		o.Server, o.Node, o.Shown = h.use.name, h.use.name, h.shown
	}
	if name := h.server.Resource().String(); h.idle {
		o.Idle = []string{name}
	} else {
		o.Relays = []member.Relay{{
			Name: name, Status: h.server.Status(), From: h.feeder.source(),
			Since:   began.Add(h.feeder.since),
			Failing: h.feeder.failing, Code: h.feeder.code,
			Refused: h.feeder.refused.After(h.server.Status().ProgressAt),
		}}
	}
	o.Reader = member.Reader{Reads: h.lead.readers > 0, Since: began.Add(h.lead.since)}
	o.Doubted = h.against != "" && h.against == contract.NodeOfIdentity(h.snapshot().Leader)
	o.Stop, o.Told = h.stop, h.stop
}

// do does what the member said.
func (h *Hub) do(e member.Effect) {
	switch e := e.(type) {
	case member.Wake:
		h.wakes++
		wakes := h.wakes
		h.after(max(e.At.Sub(h.server.clock.Now()), time.Millisecond), func() {
			if h.wakes == wakes {
				h.step(member.Observation{})
			}
		})
	case member.Request:
		h.request(e.Action)
	case member.AskStatus:
		h.askStatus()
	case member.Lead:
		h.lead.begin(e.Term, e.Elected)
	case member.Retire:
		h.lead.end()
	case member.Point:
		h.feeder.use(h.at(e.From[h.server.Resource().String()]))
	case member.Kick:
		h.feeder.kick()
	case member.AskCloud:
		h.cloud.probe()
	case member.LeaveIdentity:
		h.left = fmt.Sprintf("%s_%d", h.name, h.life)
	case member.Overrule:
		h.feeder.overrule(e.History)
	case member.Renumber:
		h.server.Renumber(e.History)
	case member.Verify:
		h.verify(e.Version)
	case member.Log:
		h.trace("%s %v", e.Message, e.Args)
	case member.Stand:
		h.stands = e.Standing
	case member.Shun:
		h.pool.judge.fail(h.name, "leaves %s alone, which does not lie", e.Node)
	case member.AskAnew, member.Hurry, member.Late: // of what is not modelled
	}
}

// doubt is what a hub does when the cloud contradicts what the leader feeds: see package membership.
func (h *Hub) doubt() {
	leader := contract.NodeOfIdentity(h.snapshot().Leader)
	if h.designated != role.Elected || h.snapshot().Source != role.Coordinator || leader == "" || !h.cloud.OK {
		return // there is nothing to compare
	}
	h.against = leader
	s := h.server.Status()
	h.feeder.overrule(s.History.Next(s.Version).Number)
	h.step(member.Observation{})
}

// askStatus asks the coordinator what it has.
func (h *Hub) askStatus() {
	var s *member.PoolStatus
	at, serve := h.toCoordinator, h.pool.coord.status
	if h.use != nil {
		at, serve = h.peers[h.use], h.use.status
	}
	at.ask(requestTimeout, func() { s = serve() }, func(err error) {
		answer := member.Answer{Status: s} // a late serve must not change it
		if err != nil {
			answer.Status = nil
		}
		h.step(member.Observation{Answer: &answer})
	})
}

// status is what a leader hub says of itself.
func (h *Hub) status() *member.PoolStatus {
	s, name := h.server.Status(), h.server.Resource().String()
	shown := &member.PoolStatus{Ready: h.stands.Leader && h.stands.Fresh}
	if h.idle {
		shown.Idle = []string{name}
		return shown
	}
	shown.Resources = []member.PoolResource{{
		Resource: name, Synced: s.Synced, Ready: s.Fresh(h.server.clock.Now(), leaderFresh),
		Version: s.Version, History: s.History.Number,
	}}
	return shown
}

// survey asks the leader hubs how they stand, and reads one that is fresh, the one in use if it is; else one that
// serves.
func (h *Hub) survey(limit time.Duration, done func(error)) {
	answers, waiting := map[*Hub]*member.PoolStatus{}, 0
	var last error
	for _, o := range h.pool.hubs {
		l := h.peers[o]
		if l == nil {
			continue
		}
		waiting++
		var s *member.PoolStatus
		l.ask(limit, func() { s = o.status() }, func(err error) {
			if waiting--; err == nil {
				answers[o] = s
			} else {
				last = err
			}
			if waiting > 0 {
				return
			}
			h.choose(answers)
			if len(answers) > 0 {
				last = nil
			}
			done(last)
		})
	}
	if waiting == 0 {
		done(errRefused)
	}
}

// choose takes what a survey found.
func (h *Hub) choose(answers map[*Hub]*member.PoolStatus) {
	was, shown := h.use, h.shown
	best := h.use
	for _, o := range h.pool.hubs { // in their order: a map has none
		s := answers[o]
		if s != nil && (best == nil || answers[best] == nil || s.Ready && !answers[best].Ready) {
			best = o
		}
	}
	h.use, h.shown = best, ""
	if best != nil && answers[best] != nil && answers[best].Ready {
		h.shown = best.name
	}
	if h.use != was || h.shown != shown {
		h.step(member.Observation{})
	}
}

// verify asks the cloud whether it has reached a version, as source.Feeder.Ahead does.
func (h *Hub) verify(version uint64) {
	before, at := h.server.Status(), uint64(0)
	h.toCloud.ask(watchTimeout, func() { at = h.pool.cloud.version }, func(err error) {
		if err == nil && at < version {
			h.server.Renumber(before.History.Next(version))
		}
	})
}

// request does one of the machine's requests to the coordinator.
func (h *Hub) request(a role.Action) {
	r := role.Result{Kind: a.Kind, Sent: h.now()}
	c := h.pool.coord
	op := h.leaseOp(a)
	serve := func() {
		defer func() { op.Is = r.Lease }()
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
		h.step(member.Observation{Result: &answer})
	}
	h.toCoordinator.ask(requestTimeout, serve, func(err error) {
		if err == nil {
			op.Until, op.Outcome = h.loop.Now(), r.Outcome
		}
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
					h.step(member.Observation{Election: &r})
				} else {
					h.step(member.Observation{Sync: &r})
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
		if use := h.use; h.designated != role.Elected {
			if use == nil {
				return nil
			}
			return &origin{name: s.String(), l: h.peers[use], relay: use.read, p: &use.process}
		}
		c := h.pool.coord
		return &origin{name: s.String(), l: h.toCoordinator, relay: c.read, p: &c.process}
	}
	return nil
}

// took notes that the relay took something.
func (h *Hub) took() {
	h.pool.judge.reached(h.name, h.server)
	h.server.changed()
	if h.snapshot().Source == role.Nowhere {
		h.step(member.Observation{})
	}
}
