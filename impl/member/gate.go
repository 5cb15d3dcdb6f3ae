package member

import "time"

const (
	// GateRest is how long a gate is left alone after it failed for the first time. Each further time is twice as long …
	GateRest = 10 * time.Second
	// GateMostRest … and at most so long.
	GateMostRest = 5 * time.Minute
	// GateLacks is for how long a gate is not asked again for a resource that it does not give.
	GateLacks = 10 * time.Minute
)

// Gate decides whether what a pool shares is read at weir-gate or at kube-apiserver itself. A gate is taken until it
// fails. Then it rests, and is taken again once it says that it is ready. All that it gives is at kube-apiserver too,
// and versions are the same, so the change costs a resume. The zero value takes the gate. It is for one goroutine.
type Gate struct {
	fails  int
	failed time.Time // when it did, for the last time
	until  time.Time // it rests until then, and is asked
	rests  bool
	lacks  map[string]time.Time // resources that it does not give, and until when they are not asked for
}

// Takes reports whether a resource is read at the gate.
func (g *Gate) Takes(now time.Time, resource string) bool {
	return !g.rests && !now.Before(g.lacks[resource])
}

// Failed notes that the gate gave no answer, or one by which it cannot serve. after is how long it wants to be left
// alone; 0: it has not said. Feeders that fail together are one failure.
func (g *Gate) Failed(now time.Time, after time.Duration) {
	if g.rests {
		return
	}
	if g.fails++; now.Sub(g.failed) > 2*GateMostRest {
		g.fails = 1
	}
	rest := GateRest
	for range g.fails - 1 {
		rest = min(2*rest, GateMostRest)
	}
	g.rests, g.failed, g.until = true, now, now.Add(min(max(rest, after), GateMostRest))
}

// Lacks notes that the gate does not give a resource.
func (g *Gate) Lacks(now time.Time, resource string) {
	if g.lacks == nil {
		g.lacks = map[string]time.Time{}
	}
	g.lacks[resource] = now.Add(GateLacks)
}

// Due is when the gate is to be asked whether it is ready. false: it is taken, and nobody has to ask.
func (g *Gate) Due() (at time.Time, rests bool) { return g.until, g.rests }

// Asked notes what a gate that rests has answered. One that is not ready rests on.
func (g *Gate) Asked(now time.Time, ready bool) {
	if g.rests = !ready; g.rests {
		g.until = now.Add(GateRest)
	}
}

// Returned notes that the cloud is there again after it was away: that the gate failed meanwhile says nothing of it.
func (g *Gate) Returned(now time.Time) {
	if g.rests {
		g.fails, g.until = 0, now
	}
}
