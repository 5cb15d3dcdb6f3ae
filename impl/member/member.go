package member

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
)

// how often a hub with streams from the cloud looks whether they are fresh, or silent.
const cloudLook = 500 * time.Millisecond

// Config is what a Member is made of.
type Config struct {
	Role role.Config // see there
	// MaxAge is how old the last sign of a stream from the cloud may be, for what it fed to be fresh. Required.
	MaxAge time.Duration
	// Timeout is that of one probe of a server. Required.
	Timeout time.Duration
}

// Member is a hub's part in its pool. It is not safe for concurrent use: one goroutine steps it.
type Member struct {
	cfg      Config
	began    time.Time
	machine  *role.Machine
	silence  silence
	late     bool
	proof    proof
	holding  holding
	arrivals arrivals
	history  histories
	shared   shared
	poll     poll
	stuck    stuck
	heritage heritage
	aim      aim
	stand    Stand
	stood    bool
	hurry    time.Duration

	in  role.Input
	out role.Output
}

// View is what a Member thinks after a step. It may be kept and read by anybody; nobody may change it.
type View struct {
	role.Snapshot
	Fresh bool            // this hub leads, its streams are fresh, and what they brought has come to the coordinator
	Lacks Differences     // of hub and coordinator
	Asked *contract.Doubt // the coordinator's question to its hubs; nil: none
	Hubs  int             // that read the coordinator, this one among them, as it says; 0: it does not tell
}

// New makes a Member that has seen nothing. began is the time of the same clock as that of Observation.Now.
func New(c Config, began time.Time) (*Member, error) {
	machine, err := role.New(c.Role)
	if err != nil {
		return nil, err
	}
	c.Role = c.Role.WithDefaults()
	return &Member{
		cfg: c, began: began, machine: machine,
		proof:    proof{rng: rand.New(rand.NewPCG(c.Role.Seed, 2))},
		holding:  holding{maxAge: c.MaxAge, grace: c.Role.Grace},
		arrivals: arrivals{maxAge: c.MaxAge, patience: c.Role.LeaseDuration / 3},
		stuck:    stuck{patience: c.MaxAge},
		aim:      aim{detours: role.NewDetours(c.Role), maxAge: 2 * c.MaxAge},
		out:      role.Output{Snapshot: role.Snapshot{Reason: "starting"}},
	}, nil
}

// Step takes what a hub saw, and returns what it has to do.
func (m *Member) Step(o Observation) (effects []Effect) {
	was := m.out.Snapshot
	for _, resource := range o.Denied {
		m.shared.forget(resource)
	}
	if o.Answer != nil {
		effects = m.answered(&o)
	}
	in := role.Input{
		Now: o.Now.Sub(m.began), Coordinator: o.Pool, Cloud: o.Cloud.Healthy, Doubted: o.Doubted, Designated: o.Designated,
		Stop: o.Stop, Election: o.Election, Sync: o.Sync, Result: o.Result,
	}
	atCloud := was.Source == role.Cloud
	long, late := m.silence.lasts(o.Now, o.Cloud.Read, atCloud && len(o.Relays) > 0)
	if in.Silent = long; late != m.late {
		m.late = late
		effects = append(effects, Late{late})
	}
	if r := o.Result; o.Election != nil || o.Sync != nil || r != nil && r.Outcome != role.Failed {
		m.proof.answers(o.Now, m.cfg.Role.LeaseDuration/5)
	}
	m.proof.noticed(o.Now, m.vacant(in))
	proven, ask := m.proof.holds(o.Now, o.Cloud.Heard, atCloud)
	if in.Unproven = !proven; ask {
		effects = append(effects, AskCloud{})
	}
	in.Fresh, in.Unable = m.arrivals.look(o.Now, &o, m.shared.without)
	if m.arrivals.of == nil {
		in.Unable = refused(o.Relays)
	}
	m.holding.look(o.Now, o.Relays, &in)
	if o.Designated != role.Elected {
		effects = append(effects, m.named(&o, &in)...)
	}
	m.in, m.out = in, m.machine.Step(in)
	s := m.out.Snapshot

	leads := in.Designated == role.Mine && s.Role == role.Leader
	stand := Stand{contract.Standing{Leader: leads, Fresh: leads && in.Fresh}, in.Designated == role.Mine}
	if !m.stood || stand != m.stand {
		m.stood, m.stand = true, stand
		effects = append(effects, stand)
	}
	holds := in.Designated == role.Elected && s.Leader == m.cfg.Role.Identity
	if m.heritage.due(o.Now, m.cfg.Role.LeaseDuration, holds, o.Stop && o.Told) {
		effects = append(effects, LeaveIdentity{})
	}
	aimed, detoured := m.aim.point(&o, in, s, &m.shared)
	effects = append(effects, aimed...)
	if hurry := m.haste(in, s); hurry != m.hurry {
		m.hurry = hurry
		effects = append(effects, Hurry{hurry})
	}
	for _, a := range m.out.Actions {
		effects = append(effects, m.act(&o, a))
	}
	needed := !m.shared.known || m.aim.astray
	asks, polled := m.poll.ask(&o, needed)
	if asks {
		effects = append(effects, AskStatus{})
	}
	wake := m.began.Add(min(m.out.Wake, detoured))
	at := func(t time.Time) {
		if t.Before(wake) {
			wake = t
		}
	}
	at(polled)
	if s.Source == role.Cloud {
		at(o.Now.Add(cloudLook))
	}
	if in.Unproven {
		at(o.Now.Add(proofLook))
	}
	if !m.stuck.since.IsZero() {
		at(o.Now.Add(stuckLook))
	}
	return append(effects, Wake{wake})
}

// act is what an action of the role machine means.
func (m *Member) act(o *Observation, a role.Action) Effect {
	switch a.Kind {
	case role.Feed:
		elected := o.Designated == role.Elected
		if elected {
			m.arrivals.begin(o.Now, o.Relays)
			m.history = histories{overruled: map[string]uint64{}}
			m.poll.lead(o.Now, true)
		}
		return Lead{a.Term, elected}
	case role.StopFeed:
		m.arrivals.of = nil
		m.poll.lead(o.Now, false)
		return Retire{}
	}
	return Request{a}
}

// answered takes an answer to AskStatus.
func (m *Member) answered(o *Observation) (effects []Effect) {
	s, all := o.Answer.Status, false
	if s != nil {
		effects = m.shared.take(m.poll.asked, s, o.Relays, o.Idle)
	}
	if s != nil && m.poll.leads && !m.poll.void {
		effects = append(effects, m.history.agree(s, o.Relays)...)
		effects = append(effects, m.history.look(o.Now, s, o.Relays)...)
		all = m.arrivals.took(m.poll.asked, s, m.poll.want, o.Relays, m.shared.without)
	}
	m.poll.answered(o.Now, s != nil, all)
	return effects
}

// named fills in what the role machine has to know in a pool without a coordinator.
func (m *Member) named(o *Observation, in *role.Input) (effects []Effect) {
	in.Shown = o.Shown
	some, stale, denied := false, false, false
	for i := range o.Relays {
		switch r := &o.Relays[i]; {
		case r.Status.Denied != "":
			denied = true
		case !r.Joins:
			fresh := r.Fresh(o.Now, m.cfg.MaxAge)
			some, stale = some || fresh, stale || !fresh
		}
	}
	in.Fresh, in.Unable = !stale && (some || !denied), false             // nothing is read, or nothing yet
	reads := m.out.Snapshot.Source == role.Coordinator && in.Shown != "" // before this step
	if m.stuck.look(o.Now, o.Server, reads && stale, in.Reached) {
		effects = append(effects, Log{slog.LevelWarn,
			"nothing fresh comes from a leader hub that says that it is fresh: another one is read", []any{"leader", o.Node}},
			Shun{o.Node})
	}
	return effects
}

// haste is within what time the hub has to know about the cloud: while nobody leads, soon, because only a hub that
// reaches the cloud may. A hub that starts in a pool that is fed has time until its clients ask something.
func (m *Member) haste(in role.Input, s role.Snapshot) time.Duration {
	switch {
	case !in.Coordinator || s.Ready:
		return 0
	case s.Leader == "":
		return 2 * m.cfg.Timeout
	}
	return 4 * m.cfg.Timeout
}

// vacant reports whether this hub may have to lead, and nobody knows yet that it can.
func (m *Member) vacant(in role.Input) bool {
	s := m.out.Snapshot
	switch in.Designated {
	case role.Others:
		return false
	case role.Mine:
		return s.Role != role.Leader
	case role.Elected:
	}
	return s.Leader == "" || s.Leader == m.cfg.Role.Former || showsFree(in)
}

// showsFree reports whether an input that the machine has not seen yet shows that nobody holds the election Lease.
func showsFree(in role.Input) bool {
	r := in.Result
	return in.Election != nil && in.Election.Holder == "" ||
		r != nil && r.Outcome == role.OK && (r.Kind == role.ReadElection || r.Kind == role.Release) && r.Lease.Holder == ""
}

// Snapshot is the state of the role machine after the last step.
func (m *Member) Snapshot() role.Snapshot { return m.out.Snapshot }

// View is what the Member thinks after the last step.
func (m *Member) View() View {
	return View{m.out.Snapshot, m.in.Fresh, m.shared.lacks, m.shared.doubt, m.shared.hubs}
}

// Input is what the role machine was stepped with last, for tests and traces.
func (m *Member) Input() role.Input { return m.in }
