package routes

import (
	"slices"
	"sync"
	"time"
)

// Life is the time in which a pod has one address.
type Life struct {
	Pod, Node, Address string
	Power              time.Time // its machine was switched on
	From               time.Time // its container runs
	To                 time.Time // it lost the address; zero: it has it
}

// since is from when on a pod is late.
func (l Life) since(fromPower bool) time.Time {
	if fromPower && !l.Power.IsZero() {
		return l.Power
	}
	return l.From
}

// Truth is who has which address. Many goroutines may tell and ask it.
type Truth struct {
	mu    sync.Mutex
	lives []*Life
	last  map[string]*Life     // by pod
	off   map[string]time.Time // when each machine lost its power for the last time
	on    map[string]time.Time // when it was switched on for the last time
}

// NewTruth returns an empty one. All machines have power.
func NewTruth() *Truth {
	return &Truth{last: map[string]*Life{}, off: map[string]time.Time{}, on: map[string]time.Time{}}
}

// Runs tells that a container of a pod runs since a time, and which address the pod has. It may be said again. What
// ended with its machine is not taken.
func (t *Truth) Runs(pod, node, address string, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if address == "" || !since.After(t.off[node]) {
		return
	}
	if l := t.last[pod]; l != nil && l.To.IsZero() {
		if l.Address == address {
			return
		}
		l.To = since
	}
	l := &Life{Pod: pod, Node: node, Address: address, Power: t.on[node], From: since}
	t.lives, t.last[pod] = append(t.lives, l), l
}

// Off tells that a machine lost its power.
func (t *Truth) Off(node string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.off[node] = at
	for _, l := range t.last {
		if l.Node == node && l.To.IsZero() {
			l.To = at
		}
	}
}

// On tells that it was switched on.
func (t *Truth) On(node string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on[node] = at
}

// Lives are all so far, those of a pod in their order.
func (t *Truth) Lives() []Life {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Life, 0, len(t.lives))
	for _, l := range t.lives {
		all = append(all, *l)
	}
	slices.SortStableFunc(all, func(a, b Life) int { return a.From.Compare(b.From) })
	return all
}
