package role

import "github.com/weir-edge/weir/impl/contract"

// Designation is who feeds a pool: whom the hubs elect, or leader hubs that the cloud has named.
type Designation uint8

// Designations. The zero value is a pool with a coordinator.
const (
	Elected Designation = iota // there is a coordinator, and a Lease in it
	Others                     // other hubs are the leader hubs
	Mine                       // this hub is one of them
)

// naming is the part of a machine in a pool whose leaders are named. There are no Leases: Input.Coordinator reports
// whether another leader hub answers.
type naming struct {
	by    Designation
	shows bool // this hub leads
}

// show makes what a leader does follow whether this hub is one.
func (n *naming) show(leads bool) []Action {
	if leads == n.shows {
		return nil
	}
	n.shows = leads
	if leads {
		return []Action{{Kind: Feed}}
	}
	return []Action{{Kind: StopFeed}}
}

// step is one in a pool whose leaders are named.
func (n *naming) step(m *self, e *election, s *sourcing, in Input) (actions []Action) {
	leads := in.Designated == Mine && in.Cloud && !in.Silent && !in.Unproven && !in.Stop
	actions = n.show(leads)
	ready := in.Coordinator && in.Shown != ""
	role, reason := Follower, "reads a leader hub"
	switch {
	case leads:
		role, reason = Leader, "is named a leader hub"
	case in.Designated == Mine && in.Stop:
		reason = "stops"
	case in.Designated == Mine:
		reason = "is named a leader hub, and does not hear the cloud"
	case !ready:
		reason = "no leader hub is fresh"
	}
	if !leads && !in.Coordinator {
		role = Pending
		if in.Designated == Others {
			reason = "no leader hub answers"
		}
	}
	if role != m.snap.Role {
		m.snap.Role, m.snap.Since = role, in.Now
	}
	m.snap.Reason, m.snap.Term, m.snap.Leader = reason, contract.Term{}, in.Shown
	m.snap.Ready, m.snap.Done = ready || leads && in.Fresh, in.Stop
	if leads {
		m.snap.Leader = m.cfg.Identity
	}
	if in.Designated == Mine {
		*s = sourcing{}
		m.snap.Source = Cloud
		if !leads && ready && !in.Doubted {
			m.snap.Source = Coordinator
		}
		return actions
	}
	// A leader hub that answers is to this hub what a leader is that holds the Lease.
	e.record, e.changed = Record{}, in.Now
	if in.Coordinator {
		e.record = Record{Exists: true, Holder: "leader hub"}
	}
	m.snap.Source = s.choose(m, e, in, ready)
	return actions
}
