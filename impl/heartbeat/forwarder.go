package heartbeat

import (
	"slices"
	"time"
)

// Kind is what an action does.
type Kind uint8

// Kinds of actions. Each must be answered by exactly one Result.
const (
	ReadCloud Kind = iota // read the node's Lease in the cloud
	ReadPool              // read it in the coordinator, not from a cache: what was written there before must be seen
	Write                 // write Action.Lease to the cloud
)

func (k Kind) String() string { return [...]string{"read-cloud", "read-pool", "write"}[k] }

// Action is something for a leader to do.
type Action struct {
	Kind Kind
	Node string
	// Lease is what Write writes: Renew, and the annotation if Annotate, on condition that the Lease is at Version.
	Lease    Lease
	Annotate bool
}

// Outcome is how an action ended.
type Outcome uint8

// Outcomes.
const (
	OK       Outcome = iota
	Conflict         // the Lease is not at the version given
	Absent           // there is no such Lease
	Refused          // the caller may not, or the request is wrong: it will be no better before the next heartbeat
	Failed           // anything else; a write may have been applied
)

func (o Outcome) String() string {
	return [...]string{"ok", "conflict", "absent", "refused", "failed"}[o]
}

// Result ends an action.
type Result struct {
	Kind    Kind
	Node    string
	Outcome Outcome
	Lease   Lease // OK: as it is now
}

// Forwarder decides what a leader forwards. Followers have one, too, which sees and does nothing: whoever leads next
// has seen heartbeats itself by then. It is not safe for concurrent use.
type Forwarder struct {
	parallel int
	nodes    map[string]*peer
	busy     int
	leads    bool

	// Counts since the start, for metrics.
	Forwarded, Expired int
	Last               time.Duration // when the last heartbeat was forwarded
}

// peer is a node of the pool whose hub does not reach the cloud.
type peer struct {
	pool     Lease         // as last seen in the coordinator
	observed time.Duration // when
	beat     time.Duration // when its last heartbeat may have been, at the earliest
	pending  bool          // it is to be forwarded

	cloud     *Lease // as last read or written, nil: not known
	confirmed bool   // the coordinator said, after cloud was read, that the node does not reach the cloud
	busy      bool
	sent      time.Duration // beat that the write under way carries
	due       time.Duration // of the next action
	failures  int           // in a row
}

// MaxNodes is how many nodes a Forwarder looks after, as many as the largest clusters have. It does not see further
// ones.
const MaxNodes = 5000

// NewForwarder returns a Forwarder that has at most so many actions under way.
func NewForwarder(parallel int) *Forwarder {
	return &Forwarder{parallel: parallel, nodes: map[string]*peer{}}
}

// Lead reports whether this hub leads. Results of actions that are under way are still taken.
func (f *Forwarder) Lead(yes bool) { f.leads = yes }

// See takes a node's Lease as the coordinator has it. live says that it was seen to change: by a watch, or because the
// same was looked at not long ago. What is seen for the first time by looking is no heartbeat: nobody knows how old it
// is.
func (f *Forwarder) See(now time.Duration, name string, l Lease, live bool) {
	p := f.nodes[name]
	if p == nil {
		if !l.Delegated || len(f.nodes) >= MaxNodes {
			return
		}
		p = &peer{pool: Lease{Renew: l.Renew}}
		f.nodes[name] = p
		if live {
			p.pool.Renew = time.Time{}
			p.observed = now
		}
	}
	if !l.Renew.Equal(p.pool.Renew) {
		since := now
		if !live {
			since = p.observed // it changed since then, nobody knows when
		}
		if now-since <= Life {
			p.beat, p.pending, p.failures = since, true, 0
			p.due = min(p.due, now)
		}
	}
	p.pool, p.observed = l, now
	if !l.Delegated {
		p.cloud, p.confirmed, p.pending = nil, false, false
		f.tidy(name, p)
	}
}

// Gone takes that a node's Lease is not in the coordinator, or does not say any more that it is delegated.
func (f *Forwarder) Gone(now time.Duration, name string) {
	if p := f.nodes[name]; p != nil {
		f.See(now, name, Lease{Renew: p.pool.Renew}, true)
	}
}

// Listed takes the names of all delegated nodes of a list.
func (f *Forwarder) Listed(now time.Duration, names []string) {
	for name := range f.nodes {
		if !slices.Contains(names, name) {
			f.Gone(now, name)
		}
	}
}

// tidy forgets a node that speaks for itself.
func (f *Forwarder) tidy(name string, p *peer) {
	if !p.busy && !p.pool.Delegated {
		delete(f.nodes, name)
	}
}

// Next returns what to do now, and when to ask again at the latest.
func (f *Forwarder) Next(now time.Duration) (actions []Action, wake time.Duration) {
	wake = now + Life
	for _, name := range f.oldest() {
		p := f.nodes[name]
		if p.pending && now-p.beat > Life {
			p.pending = false
			if f.leads {
				f.Expired++
			}
		}
		if !p.pending {
			continue
		}
		wake = min(wake, p.beat+Life+tick)
		if !f.leads || p.busy || f.busy == f.parallel {
			continue
		}
		if p.due > now {
			wake = min(wake, p.due)
			continue
		}
		p.busy = true
		f.busy++
		actions = append(actions, p.next(name))
	}
	return actions, wake
}

// oldest are the nodes in the order of their heartbeats.
func (f *Forwarder) oldest() []string {
	names := make([]string, 0, len(f.nodes))
	for name := range f.nodes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if x, y := f.nodes[a].beat, f.nodes[b].beat; x != y {
			return int(x - y)
		}
		if a < b {
			return -1
		}
		return 1
	})
	return names
}

// next is the rule of a forward; see the package comment.
func (p *peer) next(name string) Action {
	switch {
	case p.cloud == nil:
		return Action{Kind: ReadCloud, Node: name}
	case !p.cloud.Delegated && !p.confirmed:
		return Action{Kind: ReadPool, Node: name}
	}
	p.sent = p.beat
	return Action{
		Kind: Write, Node: name, Annotate: !p.cloud.Delegated,
		Lease: Lease{
			Version: p.cloud.Version, Renew: Later(p.pool.Renew, p.cloud.Renew), Delegated: true, Managed: p.cloud.Managed,
		},
	}
}

// Done takes the end of an action.
func (f *Forwarder) Done(now time.Duration, r Result) {
	p := f.nodes[r.Node]
	if p == nil || !p.busy {
		return
	}
	p.busy = false
	f.busy--
	p.due = now
	switch {
	case r.Outcome == OK:
		f.took(now, p, r)
	case r.Kind == ReadPool && r.Outcome == Absent:
		p.pool.Delegated = false
		p.cloud, p.confirmed, p.pending = nil, false, false
	case r.Outcome == Conflict:
		p.cloud, p.confirmed = nil, false
		p.later(now)
	case r.Outcome == Failed:
		if r.Kind == Write {
			p.cloud, p.confirmed = nil, false
		}
		p.later(now)
	default:
		p.cloud, p.confirmed, p.pending = nil, false, false
	}
	f.tidy(r.Node, p)
}

// later makes the next try due: the first one now, others after a pause.
func (p *peer) later(now time.Duration) {
	p.failures++
	if p.failures > 1 {
		p.due = now + Pause
	}
}

func (f *Forwarder) took(now time.Duration, p *peer, r Result) {
	switch r.Kind {
	case ReadCloud:
		if p.pool.Delegated {
			p.cloud, p.confirmed = &r.Lease, false
		}
	case ReadPool:
		f.See(now, r.Node, r.Lease, false)
		p.confirmed = p.cloud != nil && r.Lease.Delegated
	case Write:
		f.Forwarded++
		f.Last = now
		if p.pool.Delegated {
			p.cloud = &r.Lease
		}
		p.failures = 0
		if p.beat == p.sent {
			p.pending = false
		}
	}
}

// Delegated is the number of nodes that do not reach the cloud.
func (f *Forwarder) Delegated() (n int) {
	for _, p := range f.nodes {
		if p.pool.Delegated {
			n++
		}
	}
	return n
}
