package member

import (
	"testing"
	"time"
)

// did is one thing that happens to a Gate, some time after the one before.
type did struct {
	after time.Duration
	do    func(*Gate, time.Time)
	rests time.Duration // for so long it rests then; 0: it is taken
}

// takes is a did that asks only.
func takes(after, rests time.Duration) did { return did{after, func(*Gate, time.Time) {}, rests} }

func fails(after, rests time.Duration) did { return failsFor(after, 0, rests) }

func failsFor(after, says, rests time.Duration) did {
	return did{after, func(g *Gate, now time.Time) { g.Failed(now, says) }, rests}
}

func asked(after time.Duration, ready bool, rests time.Duration) did {
	return did{after, func(g *Gate, now time.Time) { g.Asked(now, ready) }, rests}
}

func returned(after, rests time.Duration) did { return did{after, (*Gate).Returned, rests} }

// failing is a gate that fails a second after it was taken again, n times. It rests longer each time.
func failing(n int) (all []did) {
	rest := GateRest
	for range n {
		all = append(all, fails(time.Second, rest), asked(rest, true, 0))
		rest = min(2*rest, GateMostRest)
	}
	return all
}

// TestGate: a gate that fails rests, longer each time, and is taken again when it says that it is ready.
func TestGate(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []did
	}{
		{"nothing is known", []did{takes(0, 0), takes(time.Hour, 0)}},
		{"it fails once", []did{fails(0, GateRest), takes(time.Second, GateRest-time.Second)}},
		{"time alone does not bring it back", []did{
			fails(0, GateRest), takes(GateRest, 0), takes(time.Hour, 0), asked(0, true, 0),
		}},
		{"it is ready", []did{fails(0, GateRest), asked(GateRest, true, 0), takes(time.Hour, 0)}},
		{"it is ready sooner", []did{fails(0, GateRest), asked(1, true, 0)}},
		{"it is not ready", []did{
			fails(0, GateRest), asked(GateRest, false, GateRest), asked(GateRest, false, GateRest), asked(GateRest, true, 0),
		}},
		{"each failure doubles", append(failing(5), fails(time.Second, GateMostRest))},
		{"at most", append(failing(40), fails(time.Second, GateMostRest))},
		{"feeders fail together", []did{
			fails(0, GateRest), fails(0, GateRest), fails(time.Second, GateRest-time.Second),
			failsFor(time.Second, time.Minute, GateRest-2*time.Second), asked(GateRest, true, 0), fails(1, 2*GateRest),
		}},
		{"it says for how long", []did{failsFor(0, time.Minute, time.Minute)}},
		{"it says for less", []did{failsFor(0, time.Second, GateRest)}},
		{"it says for ever", []did{failsFor(0, 1<<62, GateMostRest)}},
		{"it says nonsense", []did{failsFor(0, -time.Hour, GateRest)}},
		{"what it says does not double", []did{
			failsFor(0, time.Minute, time.Minute), asked(time.Minute, true, 0), fails(1, 2*GateRest),
		}},
		{"what it says and what it rests anyway", append(failing(3), failsFor(1, time.Minute, 80*time.Second))},
		{"a long good time", append(failing(5), fails(2*GateMostRest+time.Second, GateRest))},
		{"no long good time", append(failing(2), fails(GateMostRest, 4*GateRest))},
		{"a long rest is no good time", append(failing(2),
			fails(time.Second, 4*GateRest), asked(3*GateMostRest, false, GateRest), asked(GateRest, true, 0),
			fails(time.Second, 8*GateRest),
		)},
		{"after a good time it doubles again", append(failing(5),
			fails(time.Hour, GateRest), asked(GateRest, true, 0), fails(1, 2*GateRest),
		)},
		{"the cloud was away", append(failing(3),
			fails(1, 8*GateRest), returned(time.Second, 0), asked(0, true, 0), fails(1, GateRest),
		)},
		{"the cloud was away, and the gate is still", []did{
			fails(0, GateRest), returned(0, 0), asked(0, false, GateRest), returned(1, 0), asked(1, true, 0),
		}},
		{"the cloud returns, and the gate was never away", append(failing(2), returned(1, 0), fails(1, 4*GateRest))},
	} {
		var g Gate
		now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
		for i, d := range c.all {
			now = now.Add(d.after)
			d.do(&g, now)
			left, rests := g.Asks(now, time.Time{})
			taken := g.Takes(now, "endpoints.v1.")
			if taken == rests {
				t.Errorf("%s, %d: taken %t, and rests %t", c.name, i, taken, rests)
			}
			if rests && left != d.rests || !rests && d.rests > 0 {
				t.Errorf("%s, %d: rests %t for %v, want %v", c.name, i, rests, left, d.rests)
			}
		}
	}
}

// TestGateLacks: what a gate does not give is read elsewhere for a while, and all else at the gate.
func TestGateLacks(t *testing.T) {
	var g Gate
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	is := func(what string, at time.Duration, endpoints, nodes bool) {
		t.Helper()
		if e, n := g.Takes(now.Add(at), "endpoints.v1."), g.Takes(now.Add(at), "nodes.v1."); e != endpoints || n != nodes {
			t.Errorf("%s: endpoints %t, nodes %t, want %t and %t", what, e, n, endpoints, nodes)
		}
	}
	is("at first", 0, true, true)
	g.Lacks(now, "nodes.v1.")
	is("one is lacking", 0, true, false)
	is("until", GateLacks-1, true, false)
	is("not longer", GateLacks, true, true)
	g.Lacks(now.Add(time.Minute), "nodes.v1.")
	is("told again", GateLacks, true, false)
	is("and then", GateLacks+time.Minute, true, true)
	if g.Rests() {
		t.Error("a gate that lacks something rests")
	}
	g.Lacks(now, "endpoints.v1.")
	is("both", 0, false, false)
	g.Failed(now, 0)
	is("it rests, longer than it lacks", 2*GateLacks, false, false)
	g.Asked(now.Add(time.Second), true)
	is("it is ready, and lacks what it lacked", time.Second, false, false)
	g.Returned(now)
	is("nor does the cloud bring that", time.Second, false, false)
	is("but time", GateLacks+time.Minute, true, true)
}

// TestGateDoubt: a gate that gives no answer is asked once the cloud has given a sign of life since, and not before.
func TestGateDoubt(t *testing.T) {
	var g Gate
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	asks := func(what string, heard time.Duration, want bool) {
		t.Helper()
		if in, is := g.Asks(now, now.Add(heard)); is != want || in != 0 {
			t.Errorf("%s: asked %t in %v, want %t", what, is, in, want)
		}
	}
	asks("at first", time.Hour, false)
	g.Doubt(now)
	if !g.Doubtful() || !g.Takes(now, "nodes.v1.") {
		t.Error("a gate in doubt is not taken")
	}
	asks("nobody heard the cloud", -time.Second, false)
	asks("it was heard just then", 0, true)
	asks("it was heard since", 1, true)
	g.Doubt(now.Add(time.Minute))
	asks("one doubt of many feeders", 1, true)
	g.Asked(now, true)
	asks("it is there", time.Hour, false)

	g.Doubt(now)
	g.Asked(now, false)
	if in, is := g.Asks(now, now); !is || in != GateRest || g.Takes(now, "nodes.v1.") || g.Doubtful() {
		t.Errorf("a gate that is not there: asked %t in %v, want in %v", is, in, GateRest)
	}
	g.Doubt(now)
	if g.Doubtful() {
		t.Error("a gate that rests is in doubt")
	}

	g = Gate{}
	for i := 1; i < GateDoubts; i++ {
		g.Doubt(now)
		g.Asked(now, true)
	}
	if g.Rests() {
		t.Error("it rests before the last doubt")
	}
	now = now.Add(2 * GateMostRest) // doubts of before do not count
	for i := 1; i < GateDoubts; i++ {
		g.Doubt(now)
		g.Asked(now, true)
	}
	if g.Rests() {
		t.Error("doubts of long ago count")
	}
	g.Doubt(now)
	g.Asked(now, true)
	if !g.Rests() {
		t.Error("a gate that says that it is ready, and gives nothing, is taken")
	}
}

// TestGateForgot: who cannot go on at the gate goes on at kube-apiserver for a moment.
func TestGateForgot(t *testing.T) {
	var g Gate
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	if some, next := g.Again(now); some || next != 0 {
		t.Errorf("again %t, next in %v, before anything", some, next)
	}
	g.Forgot(now, "nodes.v1.")
	g.Lacks(now, "endpoints.v1.")
	if g.Takes(now, "nodes.v1.") || !g.Takes(now.Add(GateDetour), "nodes.v1.") {
		t.Error("it is not read elsewhere for GateDetour")
	}
	other := Gate{}
	other.Forgot(now, "nodes.v1.")
	other.Lacks(now, "endpoints.v1.")
	if other.Forgotten(now, "endpoints.v1.") || other.Forgotten(now, "services.v1.") || other.Takes(now, "endpoints.v1.") {
		t.Error("what the gate does not give is read there for nothing")
	}
	if !other.Forgotten(now, "nodes.v1.") || !other.Takes(now, "nodes.v1.") || other.Forgotten(now, "nodes.v1.") {
		t.Error("nobody remembers, and the gate is not asked what differs")
	}
	for _, c := range []struct {
		at, next time.Duration
		some     bool
	}{
		{0, GateDetour, false}, {GateDetour - 1, 1, false}, {GateDetour, GateLacks - GateDetour, true},
		{GateDetour, GateLacks - GateDetour, false}, {GateLacks, 0, true}, {GateLacks, 0, false},
	} {
		if some, next := g.Again(now.Add(c.at)); some != c.some || next != c.next {
			t.Errorf("at %v: again %t, next in %v; want %t and %v", c.at, some, next, c.some, c.next)
		}
	}
}
