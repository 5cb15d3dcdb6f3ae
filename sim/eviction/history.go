package eviction

import (
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/scenario"
)

// History is what was done to a pool, and what the cloud showed of it.
type History struct {
	Timers       cloud.Timers
	Nodes        []string  // of the pool
	Began, Ended time.Time // the first fault; the last look

	Dead   map[string][]Span // machine or kubelet ended, by node
	CutOff map[string][]Span // no way to the cloud, by node
	Away   []Span            // the cloud was
	Policy []PolicyChange    // in order; the first holds from the beginning

	Pods       []Pod
	Ready      map[string][]Flip      // changes of the Node's condition, by node
	Marks      map[string][]Mark      // changes of what says that the node is cut off, by node
	Heartbeats map[string][]Heartbeat // by node
}

// Span is a time that something lasted. One without an end lasted until the history ended.
type Span struct{ From, To time.Time }

// PolicyChange is the policy of a silent pool from a moment on.
type PolicyChange struct {
	At     time.Time
	Policy scenario.Policy
}

// Pod is one that was bound to a node of the pool.
type Pod struct {
	Name, Node string
	Since      time.Time // it was bound
	Deleted    time.Time // its deletion began; zero: it was not
	Stays      bool      // it tolerates for ever that its node is unreachable, as those of DaemonSets do
}

// Flip is a change of a node's condition Ready.
type Flip struct {
	At    time.Time
	Ready bool
}

// Mark is what the cloud shows of a node that is cut off.
type Mark struct {
	At               time.Time
	Taint, Condition bool
}

// Heartbeat is a renewal of a node's Lease that kube-controller-manager counts: its time grew.
type Heartbeat struct {
	At        time.Time
	Delegated bool
}

// until is the end of a span.
func (h *History) until(s Span) time.Time {
	if s.To.IsZero() {
		return h.Ended
	}
	return s.To
}

// at finds the span that holds a moment.
func (h *History) at(spans []Span, t time.Time) (Span, bool) {
	for _, s := range spans {
		if !t.Before(s.From) && t.Before(h.until(s).Add(time.Nanosecond)) {
			return s, true
		}
	}
	return Span{}, false
}

// touches reports whether any span has a moment in common with from to to.
func (h *History) touches(spans []Span, from, to time.Time) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return s.From.Before(to) && from.Before(h.until(s)) })
}

// overlap is how much of from to to the spans cover. They do not overlap each other.
func (h *History) overlap(spans []Span, from, to time.Time) (sum time.Duration) {
	for _, s := range spans {
		a, b := s.From, h.until(s)
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		sum += max(b.Sub(a), 0)
	}
	return sum
}

// silent are the times in which a node is dead, cut off or both.
func (h *History) silent(node string) []Span {
	all := append(slices.Clone(h.Dead[node]), h.CutOff[node]...)
	slices.SortFunc(all, func(a, b Span) int { return a.From.Compare(b.From) })
	var merged []Span
	for _, s := range all {
		s.To = h.until(s)
		if n := len(merged); n > 0 && !s.From.After(merged[n-1].To) {
			if s.To.After(merged[n-1].To) {
				merged[n-1].To = s.To
			}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// poolSilent are the times in which every node is silent.
func (h *History) poolSilent() []Span {
	if len(h.Nodes) == 0 {
		return nil
	}
	common := h.silent(h.Nodes[0])
	for _, n := range h.Nodes[1:] {
		var both []Span
		for _, a := range common {
			for _, b := range h.silent(n) {
				s := Span{From: latest(a.From, b.From), To: earliest(a.To, b.To)}
				if s.From.Before(s.To) {
					both = append(both, s)
				}
			}
		}
		common = both
	}
	return common
}

// connected reports whether some node was neither dead nor cut off from one moment to another.
func (h *History) connected(from, to time.Time) bool {
	return slices.ContainsFunc(h.Nodes, func(n string) bool { return !h.touches(h.silent(n), from, to) })
}

// policy is the one that holds at a moment, and since when.
func (h *History) policy(t time.Time) PolicyChange {
	var p PolicyChange
	for _, c := range h.Policy {
		if !c.At.After(t) {
			p = c
		}
	}
	return p
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
