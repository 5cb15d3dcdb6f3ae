package verdict

import (
	"slices"
	"time"
)

// Machine holds what was seen. It is not safe for concurrent use.
type Machine struct {
	config  Config
	nodes   map[string]*node
	pools   map[string]*pool
	policy  map[string]Policy
	usual   Policy
	leads   bool
	hearing time.Time // since when somebody is heard; zero: nobody is
}

type node struct {
	facts     Facts
	heard     time.Time // last change of its Lease; zero: none yet
	grown     time.Time // last one that stock Kubernetes counts too
	base      time.Time // since when it could be heard: first seen, or its pool returned
	delegated bool
	dead      bool
	kept      bool
	bound     bool
	owed      bool
}

type pool struct {
	heard   time.Time // last change of a Lease of any of its nodes; zero: none yet
	since   time.Time // of its silence
	silent  bool
	givenUp bool
}

// New returns a machine that has seen nothing. The config was validated.
func New(c Config) *Machine {
	if c.Silent == 0 {
		c.Silent = c.Grace / 2
	}
	return &Machine{config: c, nodes: map[string]*node{}, pools: map[string]*pool{}}
}

// SetPolicies says what to do with silent pools: usual where no other is given.
func (m *Machine) SetPolicies(usual Policy, pools map[string]Policy) {
	m.usual, m.policy = usual, pools
}

// SetNode tells what a Node object says now.
func (m *Machine) SetNode(now time.Time, name string, f Facts) {
	n := m.nodes[name]
	if n == nil {
		n = &node{base: now}
		m.nodes[name] = n
	}
	if n.facts.Pool != f.Pool {
		n.owed = n.owed || m.leads && n.kept // taint eviction tried, was denied, and forgot
		n.kept, n.dead = false, false        // those were of the other pool
	}
	n.facts = f
	if f.Pool != "" && m.pools[f.Pool] == nil {
		m.pools[f.Pool] = &pool{silent: true, since: now}
	}
}

// RemoveNode tells that a Node object is gone.
func (m *Machine) RemoveNode(name string) { delete(m.nodes, name) }

// Heartbeat tells that the Lease of a node was seen to change: delegated if it carries that annotation, grew if its
// renewTime is later than any before.
func (m *Machine) Heartbeat(now time.Time, name string, delegated, grew bool) {
	n := m.nodes[name]
	if n == nil {
		return // its Node is seen first, or never
	}
	n.heard, n.delegated, n.dead = now, delegated, false
	if grew {
		n.grown = now
	}
	if p := m.pools[n.facts.Pool]; p != nil {
		p.heard = now
	}
}

// Lead tells that what is decided counts from now on, and what the predecessor left.
func (m *Machine) Lead(now time.Time, r Record) {
	m.leads = true
	for name, past := range r.Pools {
		p := m.pools[name]
		if p == nil || m.heardWithin(now, p.heard, m.config.Silent) {
			continue
		}
		since := now.Add(-max(0, now.Sub(past.Since))) // a clock that was set back makes the silence shorter
		if p.heard.IsZero() && since.Before(p.since) {
			p.since = since
		}
		p.givenUp = p.givenUp || past.GivenUp
	}
	each := func(names []string, do func(*node)) {
		for _, name := range names {
			if n := m.nodes[name]; n != nil && n.heard.IsZero() {
				do(n)
			}
		}
	}
	for _, n := range m.nodes {
		n.owed = false
	}
	each(r.Kept, func(n *node) { n.kept = true })
	each(r.Bound, func(n *node) { n.bound = true })
	each(r.Dead, func(n *node) { n.dead = true })
	each(r.Owed, func(n *node) { n.owed = true })
}

// Done tells that a node was released.
func (m *Machine) Done(name string) {
	if n := m.nodes[name]; n != nil {
		n.owed = false
	}
}

func (m *Machine) heardWithin(now, heard time.Time, d time.Duration) bool {
	return !heard.IsZero() && now.Sub(heard) < d
}

// Step decides.
func (m *Machine) Step(now time.Time) Decision {
	m.listen(now)
	m.stepPools(now)
	d := Decision{
		Nodes:  make(map[string]Verdict, len(m.nodes)),
		Pools:  make(map[string]PoolVerdict, len(m.pools)),
		Tally:  make(map[string]Tally, len(m.pools)),
		Record: Record{Pools: map[string]PoolRecord{}},
		Deaf:   m.hearing.IsZero(),
	}
	for name, n := range m.nodes {
		v := m.stepNode(now, n)
		d.Nodes[name] = v
		if v.Pool != "" {
			d.Tally[v.Pool] = d.Tally[v.Pool].with(v.State)
		}
		for _, list := range []struct {
			on    bool
			names *[]string
		}{{v.Kept, &d.Record.Kept}, {v.Bound, &d.Record.Bound}, {v.Dead, &d.Record.Dead}, {v.Owed, &d.Record.Owed}} {
			if list.on {
				*list.names = append(*list.names, name)
			}
		}
	}
	for _, names := range [][]string{d.Record.Kept, d.Record.Bound, d.Record.Dead, d.Record.Owed} {
		slices.Sort(names)
	}
	for name, p := range m.pools {
		d.Pools[name] = PoolVerdict{Silent: p.silent, Since: p.since, GivenUp: p.givenUp, Policy: m.policyOf(name)}
		if p.silent {
			d.Record.Pools[name] = PoolRecord{Since: p.since, GivenUp: p.givenUp}
		}
	}
	return d
}

// with counts one node more.
func (t Tally) with(s State) Tally {
	switch s {
	case Unknown:
		t.Unknown++
	case Delegated:
		t.Heard++
		t.Delegated++
	case Normal:
		t.Heard++
	}
	return t
}

// listen notes since when anybody is heard.
func (m *Machine) listen(now time.Time) {
	for _, n := range m.nodes {
		if m.heardWithin(now, n.heard, m.config.Silent) {
			if m.hearing.IsZero() {
				m.hearing = now
			}
			return
		}
	}
	m.hearing = time.Time{}
}

func (m *Machine) policyOf(pool string) Policy {
	if p, ok := m.policy[pool]; ok {
		return p
	}
	return m.usual
}

// stepPools finds out which pools are silent, which came back, and which are given up. A pool without nodes is
// forgotten.
func (m *Machine) stepPools(now time.Time) {
	members := map[string]int{}
	for _, n := range m.nodes {
		members[n.facts.Pool]++
	}
	for name, p := range m.pools {
		if members[name] == 0 {
			delete(m.pools, name)
			continue
		}
		heard := m.heardWithin(now, p.heard, m.config.Silent)
		if heard && p.silent {
			m.welcome(now, name)
		}
		if !heard && !p.silent {
			p.since = p.heard
		}
		p.silent = !heard
		policy := m.policyOf(name)
		due := p.silent && policy.Evict && now.Sub(p.since) >= policy.After
		certain := !m.hearing.IsZero() && now.Sub(m.hearing) >= m.config.Grace
		p.givenUp = due && (p.givenUp || certain)
	}
}

// welcome gives each node of a pool that came back time to be heard.
func (m *Machine) welcome(now time.Time, pool string) {
	for _, n := range m.nodes {
		if n.facts.Pool == pool && !n.dead {
			n.base = now
		}
	}
}

// stepNode judges one node. It is dead once others of its pool were heard Grace or longer after it.
func (m *Machine) stepNode(now time.Time, n *node) Verdict {
	last := latest(n.heard, n.base)
	state := Unknown
	switch {
	case m.heardWithin(now, n.heard, m.config.Grace) && n.delegated:
		state = Delegated
	case m.heardWithin(now, n.heard, m.config.Grace):
		state = Normal
	case !n.heard.IsZero() || now.Sub(n.base) >= m.config.Grace:
		state = Missing
	}
	p := m.pools[n.facts.Pool]
	if p != nil && p.heard.Sub(last) >= m.config.Grace {
		n.dead = true
	}
	kept := false
	switch {
	case p == nil:
	case n.dead:
	case p.silent && !p.givenUp:
		kept = true
	case state.Alive():
		kept = n.facts.Unreachable || n.heard.Sub(latest(n.grown, n.base)) >= m.config.Silent
	case !p.silent:
		kept = n.kept
	}
	bound := n.facts.Bound && (n.facts.BoundFor == 0 || state.Alive() || now.Sub(last) < n.facts.BoundFor)
	switch {
	case state.Alive() || kept:
		n.owed = false
	case m.leads && (n.kept || n.bound && !bound):
		n.owed = true
	}
	n.kept, n.bound = kept, bound
	return Verdict{State: state, Pool: n.facts.Pool, Dead: n.dead, Kept: kept, Bound: bound, Owed: n.owed, Heard: n.heard}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
