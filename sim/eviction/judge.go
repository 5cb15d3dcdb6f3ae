package eviction

import (
	"fmt"
	"slices"
	"time"
)

// Verdict is what came of a column.
type Verdict struct {
	Evicted    int // pods of the pool that were deleted after the first fault
	Wrong      int // though their node was alive, or earlier than the policy says
	Missed     int // that should have been
	NotReady   int // times that a node was not Ready
	Unjust     int // the same of nodes that were alive while a hub of the pool was connected long enough
	Late       int // heartbeats of such nodes
	Unmarked   int // nodes that were cut off for long and not shown as such
	MarkedLeft int // nodes that were back and still shown as cut off, or not Ready, in the end

	Detected  time.Duration // longest from a node's cut to its first delegated heartbeat
	DeadMoved time.Duration // longest from a node's death to the eviction of its last pod
	Details   []string      // what was wrong, for a person
}

// slack is what may pass beyond all timers: of a busy machine and of controllers that look now and then.
const slack = 10 * time.Second

// Judge makes the figures of a history.
func Judge(h *History) (v Verdict) {
	h.judgePods(&v)
	h.judgeMissed(&v)
	for _, n := range h.Nodes {
		h.judgeReady(&v, n)
		h.judgeHeartbeats(&v, n)
		h.judgeMarks(&v, n)
	}
	return v
}

func (v *Verdict) say(format string, args ...any) {
	v.Details = append(v.Details, fmt.Sprintf(format, args...))
}

// since is a moment for a person: seconds after the first fault.
func (h *History) since(t time.Time) string { return fmt.Sprintf("%.1fs", t.Sub(h.Began).Seconds()) }

func (h *History) judgePods(v *Verdict) {
	for _, p := range h.Pods {
		if p.Deleted.Before(h.Began) { // or never
			continue
		}
		v.Evicted++
		if dead, is := h.dead(p.Node, p.Deleted); is {
			v.DeadMoved = max(v.DeadMoved, p.Deleted.Sub(dead.From))
			continue
		}
		if why := h.forbids(p.Deleted); why != "" {
			v.Wrong++
			v.say("pod %s of %s was evicted at %s: %s", p.Name, p.Node, h.since(p.Deleted), why)
		}
	}
}

// dead finds the death that an eviction at a moment is owed to. The controllers see a return a little later.
func (h *History) dead(node string, t time.Time) (Span, bool) {
	for _, s := range h.Dead[node] {
		if !t.Before(s.From) && t.Before(h.until(s).Add(2*h.Timers.MonitorPeriod)) {
			return s, true
		}
	}
	return Span{}, false
}

// forbids tells why a pod of a node that lives may not be evicted at a moment; empty: the policy of a silent pool says
// so.
func (h *History) forbids(t time.Time) string {
	s, silent := h.at(h.poolSilent(), t)
	p := h.policy(t).Policy
	switch {
	case !silent:
		return "its node is alive, and not all of its pool is silent"
	case !p.Evict:
		return "its node is alive, and the policy of the silent pool is to keep pods"
	case t.Before(s.From.Add(p.After)):
		return fmt.Sprintf("the pool has been silent since %s, which is less than %v", h.since(s.From), p.After)
	}
	return ""
}

// judgeMissed looks for pods that should have been evicted: those of dead nodes that have peers, and of a silent pool
// by its policy.
func (h *History) judgeMissed(v *Verdict) {
	pool := h.poolSilent()
	queue := time.Duration(float64(len(h.Nodes)-1) / h.Timers.EvictionRate * float64(time.Second))
	for _, n := range h.Nodes {
		for _, s := range h.Dead[n] {
			due := s.From.Add(h.Timers.EvictedBy() + queue + slack)
			if due.Before(h.until(s)) && !h.touches(pool, s.From, due) {
				h.mustBeGone(v, n, s.From, due)
			}
		}
	}
	for _, s := range pool {
		p := h.policy(h.until(s))
		if !p.Policy.Evict {
			continue
		}
		due := latest(s.From.Add(max(h.Timers.EvictedBy(), p.Policy.After)), s.From)
		if p.At.After(s.From) { // then tolerations may count from the beginning
			due = latest(due, p.At.Add(h.Timers.Toleration))
		}
		if due = due.Add(queue + slack); due.Before(h.until(s)) {
			for _, n := range h.Nodes {
				h.mustBeGone(v, n, s.From, due)
			}
		}
	}
}

// mustBeGone counts the pods that were on a node at a moment and are not deleted when they should be.
func (h *History) mustBeGone(v *Verdict, node string, from, due time.Time) {
	for _, p := range h.Pods {
		if p.Node == node && !p.Stays && p.Since.Before(from) && (p.Deleted.IsZero() || p.Deleted.After(due)) {
			v.Missed++
			v.say("pod %s of %s was not evicted until %s", p.Name, node, h.since(due))
		}
	}
}

func (h *History) judgeReady(v *Verdict, node string) {
	for _, f := range h.Ready[node] {
		if f.Ready || f.At.Before(h.Began) {
			continue
		}
		v.NotReady++
		if _, dead := h.dead(node, f.At); !dead && h.connected(f.At.Add(-h.Timers.MonitorGrace), f.At) {
			v.Unjust++
			v.say("%s was not Ready at %s, and it was alive", node, h.since(f.At))
		}
	}
}

// judgeHeartbeats finds gaps between heartbeats, and how long the first delegated one took.
func (h *History) judgeHeartbeats(v *Verdict, node string) {
	last, pool := h.Began, h.poolSilent()
	beats := append(slices.Clone(h.Heartbeats[node]), Heartbeat{At: h.Ended})
	for _, b := range beats {
		if !b.At.After(last) {
			continue
		}
		// While the cloud is away, or nobody in the pool reaches it, nothing can be done.
		gap := b.At.Sub(last) - h.overlap(h.Away, last, b.At) - h.overlap(pool, last, b.At)
		if gap > h.Timers.Lease && !h.touches(h.Dead[node], last, b.At) {
			v.Late++
			v.say("%s sent no heartbeat from %s to %s", node, h.since(last), h.since(b.At))
		}
		last = b.At
	}
	for _, s := range h.CutOff[node] {
		if !h.connected(s.From, h.until(s)) || h.touches(h.Dead[node], s.From, h.until(s)) {
			continue
		}
		first := h.until(s)
		for _, b := range h.Heartbeats[node] {
			if b.Delegated && b.At.After(s.From) && b.At.Before(first) {
				first = b.At
			}
		}
		v.Detected = max(v.Detected, first.Sub(s.From))
	}
}

func (h *History) judgeMarks(v *Verdict, node string) {
	for _, s := range h.CutOff[node] {
		if h.until(s).Sub(s.From) < h.Timers.MonitorGrace || !h.connected(s.From, h.until(s)) ||
			h.touches(h.Dead[node], s.From, h.until(s)) {
			continue
		}
		if !slices.ContainsFunc(h.Marks[node], func(m Mark) bool {
			return m.Taint && m.Condition && m.At.After(s.From) && m.At.Before(h.until(s))
		}) {
			v.Unmarked++
			v.say("%s was cut off from %s to %s, and the cloud did not show it", node, h.since(s.From), h.since(h.until(s)))
		}
	}
	if h.touches(h.silent(node), h.Ended.Add(-h.Timers.MonitorGrace), h.Ended) {
		return // it is not back, or not for long enough
	}
	if all := h.Marks[node]; len(all) > 0 && (all[len(all)-1].Taint || all[len(all)-1].Condition) {
		v.MarkedLeft++
		v.say("%s is back and still shown as cut off", node)
	} else if all := h.Ready[node]; len(all) > 0 && !all[len(all)-1].Ready {
		v.MarkedLeft++
		v.say("%s is back and still not Ready", node)
	}
}
