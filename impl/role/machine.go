package role

import (
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// Machine is the role machine of one hub. It is not safe for concurrent use: one goroutine steps it.
type Machine struct {
	self
	elect   election
	sync    readiness
	source  sourcing
	feeding contract.Term // zero: not
	naming  naming
}

// New returns a machine that is Pending and fed from nowhere yet.
func New(c Config) (*Machine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Machine{self: newSelf(c, 0)}, nil
}

// Step takes what was observed and returns what follows. It must be called when Output.Wake is due and whenever
// something in Input changed; calling it more often does no harm.
func (m *Machine) Step(in Input) Output {
	now := in.Now
	if in.Result != nil {
		if in.Result.Kind.election() {
			m.elect.result(&m.self, now, *in.Result)
		} else {
			m.sync.result(&m.self, now, *in.Result)
		}
	}
	m.reached = m.reached || in.Coordinator
	actions := m.change(in.Designated)
	if in.Designated != Elected {
		actions = append(actions, m.naming.step(&m.self, &m.elect, &m.source, in)...)
		return Output{Snapshot: m.snap, Actions: actions, Wake: m.wake(in)}
	}
	if in.Election != nil {
		m.elect.noticed(now, *in.Election)
	}
	if in.Sync != nil {
		m.sync.noticed(now, *in.Sync)
	}

	m.unready = m.sync.unready(&m.self, in)
	reason := m.elect.judge(&m.self, in)
	actions = append(actions, m.feed()...)
	if a, ok := m.elect.next(&m.self, in); ok {
		actions = append(actions, a)
	}
	if a, ok := m.sync.next(&m.self, in, m.elect.held); ok {
		actions = append(actions, a)
	}
	m.publish(in, reason)
	return Output{Snapshot: m.snap, Actions: actions, Wake: m.wake(in)}
}

// change follows a change of who feeds the pool. What was asked before says nothing about what is now.
func (m *Machine) change(to Designation) (actions []Action) {
	if to == m.naming.by {
		return nil
	}
	if (m.naming.by == Elected) != (to == Elected) {
		m.elect = election{busy: m.elect.busy, void: m.elect.busy}
		m.sync = readiness{busy: m.sync.busy, void: m.sync.busy}
		actions = m.feed()
	}
	m.naming.by = to
	return append(actions, m.naming.show(false)...)
}

// feed makes the feed follow the leadership.
func (m *Machine) feed() (actions []Action) {
	var term contract.Term
	if m.elect.held {
		term = m.elect.term
	}
	if term == m.feeding {
		return nil
	}
	if m.feeding != (contract.Term{}) {
		actions = append(actions, Action{Kind: StopFeed})
	}
	if m.elect.held {
		actions = append(actions, Action{Kind: Feed, Term: term})
		m.sync.renew = 0
	}
	m.feeding = term
	return actions
}

func (m *Machine) publish(in Input, reason string) {
	role := Follower
	switch {
	case m.elect.held:
		role, reason = Leader, "holds the election lease"
	case !in.Coordinator:
		role = Pending
		if reason == "" {
			reason = "the coordinator is not healthy"
		}
	case reason != "":
	case !in.Cloud:
		reason = "the cloud is not healthy"
	case in.Unable:
		reason = "the cloud gives it nothing that the pool shares"
	default:
		reason = "stands for election"
	}
	if role != m.snap.Role {
		m.snap.Role, m.snap.Since = role, in.Now
	}
	m.snap.Reason, m.snap.Term = reason, m.feeding
	m.snap.Leader = m.elect.record.Holder
	m.snap.Ready = m.sync.ready(&m.self, in)
	m.snap.Source = m.source.choose(&m.self, &m.elect, in, m.snap.Ready)
	m.snap.Done = in.Stop && m.elect.given(&m.self, in)
}

// wake is when something changes without anything being observed.
func (m *Machine) wake(in Input) time.Duration {
	wake := in.Now + time.Minute
	at := func(t time.Duration) {
		if t > in.Now {
			wake = min(wake, t)
		}
	}
	if in.Coordinator && in.Designated == Elected {
		if !m.elect.busy {
			at(m.elect.due)
		}
		if !m.sync.busy {
			at(m.sync.when(in, m.elect.held))
		}
		at(m.elect.barred)
		at(m.elect.yields(&m.self, in))
		at(m.sync.expires(&m.self))
	}
	if m.elect.held {
		at(m.elect.renewed + m.cfg.RenewDeadline)
		at(m.elect.gives(&m.self))
	}
	if m.snap.Source == Nowhere {
		at(m.patience())
		at(m.source.first)
	}
	at(m.source.leave)
	at(m.source.back)
	return wake
}
