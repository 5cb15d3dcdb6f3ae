package member

import "time"

const (
	// GateRest is how long a gate is left alone after it failed for the first time. Each further time is twice as long.
	GateRest = 10 * time.Second
	// GateMostRest is how long at most.
	GateMostRest = 5 * time.Minute
	// GateLacks is for how long a gate is not asked again for a resource that it does not give.
	GateLacks = 10 * time.Minute
	// GateDetour is for how long a resource is read at kube-apiserver of which the gate has forgotten the relay's version:
	// one that was started again remembers what came since. kube-apiserver remembers minutes.
	GateDetour = 3 * time.Second
	// GateSpread is within what time the leaders of all pools leave a gate that has failed: kube-apiserver is to answer
	// them one after the other. What they read meanwhile is that much older.
	GateSpread = 3 * time.Second
	// GateDoubts is how often within GateMostRest a gate may say that it is ready after nothing could be read there.
	GateDoubts = 3
)

// Gate decides whether what a pool shares is read at weir-gate or at kube-apiserver itself. A gate is taken until it
// fails. Then it rests, and is taken again once it says that it is ready. All that it gives is at kube-apiserver too,
// and versions are the same, so the change costs a resume. But who has missed much may be shown a difference there, and
// at the gate each change. So a gate that gives no answer is only doubted, as the link may be at fault: it fails if the
// cloud gives a sign of life after that and the gate then still does not.
//
// The zero value takes the gate. It is for one goroutine.
type Gate struct {
	fails  int
	taken  time.Time // since when it is, after it rested; zero: from the start
	until  time.Time // it rests until then, and is asked
	rests  bool
	doubt  time.Time            // since when it gives no answer; zero: it does
	doubts int                  // that it has cleared …
	since  time.Time            // … since then
	lacks  map[string]time.Time // resources that it does not give, and until when they are not asked for
}

// Takes reports whether a resource is read at the gate.
func (g *Gate) Takes(now time.Time, resource string) bool {
	return !g.rests && !now.Before(g.lacks[resource])
}

// Doubt notes that the gate gave no answer. Feeders that get none together are one doubt.
func (g *Gate) Doubt(now time.Time) {
	if !g.rests && g.doubt.IsZero() {
		g.doubt = now
	}
}

// Failed notes that the gate gave an answer by which it cannot serve, or one that nobody can use. after is how long it
// wants to be left alone; 0: it has not said. Feeders that fail together are one failure.
func (g *Gate) Failed(now time.Time, after time.Duration) {
	g.doubt = time.Time{}
	if g.rests {
		return
	}
	if g.fails++; now.Sub(g.taken) > 2*GateMostRest { // a good time
		g.fails = 1
	}
	rest := GateRest
	for range g.fails - 1 {
		rest = min(2*rest, GateMostRest)
	}
	g.rests, g.until = true, now.Add(min(max(rest, after), GateMostRest))
}

// Lacks notes that the gate does not give a resource.
func (g *Gate) Lacks(now time.Time, resource string) { g.without(resource, now.Add(GateLacks)) }

// Forgot notes that the gate cannot go on at the version that the relay of a resource has reached.
func (g *Gate) Forgot(now time.Time, resource string) { g.without(resource, now.Add(GateDetour)) }

// Forgotten notes that kube-apiserver has forgotten that version as well. It reports whether the resource is read at
// the gate for that from now on: a gate tells what differs in fewer bytes.
func (g *Gate) Forgotten(now time.Time, resource string) bool {
	until, is := g.lacks[resource]
	if !is || until.Sub(now) > GateDetour {
		return false
	}
	delete(g.lacks, resource)
	return true
}

func (g *Gate) without(resource string, until time.Time) {
	if g.lacks == nil {
		g.lacks = map[string]time.Time{}
	}
	g.lacks[resource] = until
}

// Again reports whether a resource may be read at the gate that was not, since the last call, and in what time the next
// one may be; 0: there is none.
func (g *Gate) Again(now time.Time) (some bool, next time.Duration) {
	for resource, until := range g.lacks {
		switch in := until.Sub(now); {
		case in <= 0:
			delete(g.lacks, resource)
			some = true
		case next == 0 || in < next:
			next = in
		}
	}
	return some, next
}

// Rests reports whether the gate is left alone.
func (g *Gate) Rests() bool { return g.rests }

// Doubtful reports whether it is in doubt whether the gate is there. Then the cloud is to give a sign of life.
func (g *Gate) Doubtful() bool { return !g.doubt.IsZero() }

// Asks is in what time the gate is to be asked whether it is ready, if it is; heard is the last sign of the cloud.
func (g *Gate) Asks(now, heard time.Time) (in time.Duration, is bool) {
	switch {
	case g.rests:
		return max(g.until.Sub(now), 0), true
	case g.Doubtful() && !heard.Before(g.doubt):
		return 0, true
	}
	return 0, false
}

// Asked notes what the gate has answered. One that rests and is not ready rests on. One that clears doubts again and
// again, though nothing can be read there, fails.
func (g *Gate) Asked(now time.Time, ready bool) {
	switch {
	case g.rests && ready:
		g.rests, g.taken, g.doubts = false, now, 0
	case g.rests:
		g.until = now.Add(GateRest)
	case !ready:
		g.Failed(now, 0)
	default:
		if g.doubt = (time.Time{}); now.Sub(g.since) > GateMostRest {
			g.doubts, g.since = 0, now
		}
		if g.doubts++; g.doubts >= GateDoubts {
			g.doubts = 0
			g.Failed(now, 0)
		}
	}
}

// Returned notes that the cloud is there again after it was away: that the gate failed meanwhile says nothing of it.
func (g *Gate) Returned(now time.Time) {
	if g.rests {
		g.fails, g.until = 0, now
	}
}
