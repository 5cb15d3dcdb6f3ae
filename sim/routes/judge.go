package routes

import (
	"fmt"
	"slices"
	"time"
)

// Rules say for how long a client may be shown what is not so.
type Rules struct {
	Wrong time.Duration // an address that is not the pod's, since the pod has another one
	Dead  time.Duration // a pod as ready, since its machine has no power
	// From when the machine is switched on a pod is late, and not from when its container runs. A kubelet that has no API
	// server starts no container, so nothing would be late.
	FromPower bool
	// Slow is the time after which it is told which client did not have a pod yet.
	Slow time.Duration
	// Settled is how long all pods must have had their addresses for a call that fails to be a late one; 0: none is late.
	Settled time.Duration
}

// Verdict is what came of it.
type Verdict struct {
	Moved []time.Duration // by life with another address than the one before: until all other nodes' clients had it
	// Clients that were shown, for too long: another address than the pod's as ready, and a pod of a machine without power
	// as ready. Each client counts once for each life and pod.
	Wrong, Dead int
	Back        int      // clients that were shown another address again after the right one
	LateCalls   int      // calls that failed though all pods had their addresses for long
	Lines       []string // of each that was wrong, in words
	Slow        []string // which client had which pod after more than Rules.Slow, in words
}

// P99 is the 99th percentile of the times; 0: there are none.
func (v Verdict) P99() time.Duration {
	if len(v.Moved) == 0 {
		return 0
	}
	all := slices.Sorted(slices.Values(v.Moved))
	return all[(len(all)*99+99)/100-1]
}

// Judge holds what clients were shown against what was so, up to a time.
func Judge(lives []Life, clients []Client, r Rules, end time.Time) (v Verdict) {
	shown := make([]history, len(clients))
	for i, c := range clients {
		shown[i] = c.history()
	}
	before := map[string]Life{}
	for i, l := range lives {
		former, moved := before[l.Pod]
		moved = moved && former.Address != l.Address
		before[l.Pod] = l
		next := end // until then the pod is dead once it is
		for _, later := range lives[i+1:] {
			if later.Pod == l.Pod {
				next = later.From
				break
			}
		}
		if l.To.IsZero() || l.To.After(end) {
			l.To = end
		}
		var late, of time.Duration
		for j, c := range clients {
			seen := shown[j][l.Pod].within(c.From, c.until(end))
			v.hold(l, c, seen, r, next)
			if !moved || c.Node == l.Node || c.From.After(l.From) || !c.until(end).After(l.From) {
				continue
			}
			if c.Calls != nil {
				of = c.answeredLate(l, l.since(r.FromPower), end)
			} else {
				of = seen.late(l, r.FromPower)
			}
			if late = max(late, of); of > r.Slow {
				v.Slow = append(v.Slow, fmt.Sprintf("%s on %s: had %s, which has %s since %s, after %s", c.Kind, c.Node, l.Pod,
					l.Address, l.From.Format(time.TimeOnly), of.Round(time.Millisecond)))
			}
		}
		if moved {
			v.Moved = append(v.Moved, late)
		}
	}
	if r.Settled > 0 {
		v.holdCalls(lives, clients, r.Settled)
	}
	return v
}

// holdCalls counts calls that failed while all pods were where they had been for a time, and stayed there. One that was
// under way when a machine lost its power is not late.
func (v *Verdict) holdCalls(lives []Life, clients []Client, settled time.Duration) {
	pods := map[string]bool{}
	for _, l := range lives {
		pods[l.Pod] = true
	}
	for _, c := range clients {
		for _, f := range c.Failures {
			n := 0
			for _, l := range lives {
				if !f.From.Before(l.From.Add(settled)) && (l.To.IsZero() || f.To.Before(l.To)) {
					n++
				}
			}
			if n == len(pods) {
				v.LateCalls++
				v.Lines = append(v.Lines, fmt.Sprintf("%s on %s: a call failed at %s, and all pods ran", c.Kind, c.Node,
					f.From.Format(time.TimeOnly)))
			}
		}
	}
}

// hold counts what one client was shown wrong of one life, and of the death behind it.
func (v *Verdict) hold(l Life, c Client, steps steps, r Rules, next time.Time) {
	other := func(e Endpoint) bool { return e.Ready && e.Address != l.Address }
	if at, bad := steps.find(later(l.From, c.From).Add(r.Wrong), l.To, other); bad {
		v.Wrong++
		v.Lines = append(v.Lines, fmt.Sprintf("%s on %s: %s has %s, and is shown elsewhere at %s", c.Kind, c.Node, l.Pod,
			l.Address, at.Format(time.TimeOnly)))
	}
	if at, bad := steps.find(later(l.To, c.From).Add(r.Dead), next, func(e Endpoint) bool { return e.Ready }); bad {
		v.Dead++
		v.Lines = append(v.Lines, fmt.Sprintf("%s on %s: %s is dead, and shown as ready at %s", c.Kind, c.Node, l.Pod,
			at.Format(time.TimeOnly)))
	}
	if at, right := steps.right(l); right {
		if at, bad := steps.find(at, l.To, func(e Endpoint) bool { return e.Address != l.Address }); bad {
			v.Back++
			v.Lines = append(v.Lines, fmt.Sprintf("%s on %s: %s was shown at %s, and elsewhere again at %s", c.Kind, c.Node,
				l.Pod, l.Address, at.Format(time.TimeOnly)))
		}
	}
}

// late is how long after a pod had its address a client was shown it, and no other. A pod that loses it first, or a
// client that ends, ends the time.
func (s steps) late(l Life, fromPower bool) time.Duration {
	since := l.since(fromPower)
	if at, ok := s.right(l); ok {
		return at.Sub(since)
	}
	if len(s) == 0 {
		return l.To.Sub(since)
	}
	return max(earlier(l.To, s[len(s)-1].to).Sub(since), 0)
}

// right is when in its life a pod is shown at its address, ready, and nowhere else.
func (s steps) right(l Life) (at time.Time, ok bool) {
	for _, x := range s {
		ready, elsewhere := false, false
		for _, e := range x.endpoints {
			ready, elsewhere = ready || e.Ready, elsewhere || e.Address != l.Address
		}
		if x.to.After(l.From) && x.from.Before(l.To) && ready && !elsewhere {
			return later(x.from, l.From), true
		}
	}
	return at, false
}

// find is when between two times an endpoint is shown of which bad is true.
func (s steps) find(from, to time.Time, bad func(Endpoint) bool) (at time.Time, ok bool) {
	for _, x := range s {
		if begin := later(x.from, from); begin.Before(earlier(x.to, to)) && slices.ContainsFunc(x.endpoints, bad) {
			return begin, true
		}
	}
	return at, false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
