package virtual

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
)

// judge holds the pool to its promises, at each step.
type judge struct {
	pool     *Pool
	err      error
	versions map[string]reached // by relay
	applied  contract.Term      // of the last change that the coordinator took
	newest   map[string]contract.Term
	sources  map[*Hub]sourced
}

// reached is how far a relay is.
type reached struct {
	era              int
	history, version uint64
}

// sourced is where a hub was fed from.
type sourced struct {
	life   int
	source role.Source
	fine   time.Duration // when there was last no reason to leave the pool's cache
	// doubted: what it holds was fed by a leader that the cloud contradicted, and the pool's cache was not fresh since.
	doubted bool
}

func newJudge(p *Pool) *judge {
	return &judge{pool: p, versions: map[string]reached{}, newest: map[string]contract.Term{}, sources: map[*Hub]sourced{}}
}

func (j *judge) fine() bool { return j.err == nil }

func (j *judge) fail(who, format string, args ...any) {
	if j.err == nil {
		j.err = fmt.Errorf("%v, %s: %s", j.pool.Now(), who, fmt.Sprintf(format, args...))
		j.pool.trace(who, "BROKEN "+format, args...)
	}
}

// fresh forgets what a relay had reached: its process began from nothing.
func (j *judge) fresh(name string) { delete(j.versions, name) }

// reached checks that a relay never goes back.
func (j *judge) reached(name string, s *server) {
	st := s.Status()
	before := j.versions[name]
	switch {
	case s.era < before.era:
		j.fail(name, "its relay goes back from era %d to %d", before.era, s.era)
	case s.era == before.era && st.History.Number == before.history && st.Version < before.version:
		j.fail(name, "its relay goes back from %d to %d", before.version, st.Version)
	}
	j.versions[name] = reached{s.era, st.History.Number, st.Version}
}

// effective checks that there is one effective feed: the holder's, of a term that is not older than any that was read
// before.
func (j *judge) effective(x member.Leader) {
	j.pool.at(LeaseOp{Kind: "effective", Holder: x.Node})
	l := &j.pool.coord.leases
	if holder := contract.NodeOfIdentity(l.read(contract.ElectionLease).Holder); holder != x.Node {
		j.fail("coordinator", "takes a change from %s under %v, but %q holds the lease", x.Node, x.Term, holder)
	}
	if x.Term.Incarnation == j.applied.Incarnation && x.Term.Version < j.applied.Version {
		j.fail("coordinator", "takes a change of %s under %v after one under %v", x.Node, x.Term, j.applied)
	}
	if x.Term.Incarnation != l.election.Fence.Incarnation {
		j.fail("coordinator", "takes a change under %v in its life %s", x.Term, l.election.Fence.Incarnation)
	}
	j.applied = x.Term
}

// stepped checks what a hub has decided.
func (j *judge) stepped(h *Hub) {
	s, now := h.snapshot(), j.pool.Now()
	before := j.sources[h]
	if before.life != h.life {
		before = sourced{life: h.life, fine: now}
	}
	// A leader hub is fed from the cloud, whenever it has nobody better; and what may be forged is left without grace.
	if doubted := h.member.Input().Doubted; doubted || s.Ready || s.Source != role.Coordinator {
		before.doubted = doubted || before.doubted && before.source != s.Source
	}
	exempt := s.Role == role.Leader || h.designated == role.Mine || before.doubted
	if before.source == role.Coordinator && s.Source == role.Cloud && !exempt && now < before.fine+j.pool.role.Grace {
		j.fail(h.name, "goes to the cloud %v after the pool's cache was lost, grace is %v", now-before.fine,
			j.pool.role.Grace)
	}
	if s.Source != role.Coordinator || s.Ready || !h.cloud.OK {
		before.fine = now
	}
	before.source = s.Source
	j.sources[h] = before
	leads := s.Role == role.Leader
	if leads != h.lead.leads || h.lead.term != s.Term {
		j.fail(h.name, "role %v, term %v, feeds under %v", s.Role, s.Term, h.lead.term)
	}
	if !leads {
		return
	}
	if !h.cloud.OK || !h.coordinator.OK && h.designated == role.Elected {
		j.fail(h.name, "leads with cloud=%t coordinator=%t", h.cloud.OK, h.coordinator.OK)
	}
	if old := j.newest[h.name]; old.Incarnation == s.Term.Incarnation && old.Version > s.Term.Version {
		j.fail(h.name, "its term goes back from %v to %v", old, s.Term)
	}
	j.newest[h.name] = s.Term
}

// Healed checks, after all is well again for long enough, that one hub leads, that everybody is fresh and that all
// clients have what the cloud has.
func (j *judge) healed() {
	p := j.pool
	defer j.healedState()
	if p.cfg.Leaders > 0 {
		j.healedNamed()
		return
	}
	var leader *Hub
	for _, h := range p.hubs {
		if h.snapshot().Role == role.Leader {
			if leader != nil {
				j.fail(h.name, "leads beside %s", leader.name)
			}
			leader = h
		}
	}
	if leader == nil {
		j.fail("pool", "healed, but nobody leads")
		return
	}
	if !p.coord.ready() {
		j.fail("coordinator", "healed, but its relay is not fresh: %+v", p.coord.server.Status())
	}
	for _, h := range p.hubs {
		s, want := h.snapshot(), role.Coordinator
		if h == leader {
			want = role.Cloud
		}
		if s.Leader != fmt.Sprintf("%s_%d", leader.name, leader.life) || !s.Ready || s.Source != want {
			j.fail(h.name, "healed, %s leads, but: %+v", leader.name, s)
		}
	}
}

// healedNamed checks the same of a pool with leader hubs: they lead, and the others read them.
func (j *judge) healedNamed() {
	for _, h := range j.pool.hubs {
		s, leads := h.snapshot(), h.designated == role.Mine
		want := role.Coordinator
		if leads {
			want = role.Cloud
		}
		if !s.Ready || s.Source != want || (s.Role == role.Leader) != leads {
			j.fail(h.name, "healed, but: %+v", s)
		}
	}
}

// healedState checks that all are in the cloud's history and hold what it has.
func (j *judge) healedState() {
	p := j.pool
	all := servers(p.hubs)
	if p.cfg.Leaders == 0 {
		all = append(all, p.coord.server)
	}
	for _, s := range all {
		if s.Status().Joins { // nobody reads it
			continue
		}
		if s.era != p.cloud.era {
			j.fail("pool", "healed, but a relay is of era %d, the cloud in %d: %+v", s.era, p.cloud.era, s.Status())
		}
	}
	for _, c := range p.clients {
		if d := p.cloud.view.Differences(c.judged.State(), p.cloud.version); !c.synced || len(d) > 0 {
			j.fail(c.name, "healed, at %d of %d: %s", c.version, p.cloud.version, strings.Join(d, ", "))
		}
	}
}

func servers(hubs []*Hub) (all []*server) {
	for _, h := range hubs {
		all = append(all, h.server)
	}
	return all
}
