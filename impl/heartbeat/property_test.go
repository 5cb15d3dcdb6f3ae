package heartbeat

import (
	"flag"
	"slices"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the properties with this seed alone")
	timesFlag = flag.Uint64("times", 1, "run the properties with so many times the seeds")
)

// seeds are those to run.
func seeds(n uint64) []uint64 {
	if *seedFlag != 0 {
		return []uint64{*seedFlag}
	}
	var out []uint64
	for s := range n * *timesFlag {
		out = append(out, s+1)
	}
	return out
}

func (w *world) report(t *testing.T, seed uint64) {
	t.Helper()
	if len(w.faults) == 0 {
		return
	}
	for _, line := range w.trace[max(0, len(w.trace)-60):] {
		t.Log(line)
	}
	t.Fatalf("seed %d: %v", seed, w.faults)
}

// change does one random thing to the pool. skew is how much clocks are off.
func (w *world) change(skew time.Duration) {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	what, step := w.rng.IntN(9), time.Duration(w.rng.IntN(3)-1)*skew
	w.note("%s change %d", n.name, what)
	switch what {
	case 0, 1, 2:
		n.cut = !n.cut
	case 3:
		n.lan = !n.lan
		n.watching = n.watching && n.lan
	case 4:
		w.down = !w.down
		for _, o := range w.nodes {
			o.watching = false
		}
	case 5: // the old leader may not know for a while
		for _, o := range w.nodes {
			if o != n {
				w.after(w.span(0, 10*time.Second), func() { o.fwd.Lead(false) })
			}
		}
		w.after(w.span(0, 17*time.Second), func() { n.fwd.Lead(true); n.forward() })
	case 6:
		n.alive = !n.alive
		n.died = w.Now()
	case 7:
		n.wall += step
	case 8:
		n.watching = false
	}
}

// heal ends all faults.
func (w *world) heal() {
	w.down, w.quick = false, true
	for _, n := range w.nodes {
		n.cut, n.lan, n.alive = false, true, true
	}
}

// TestRandomFaults: whatever happens in which order, no forward annotates a node that has returned, none goes back,
// none is of a kubelet that has long been dead; and in the end all nodes speak for themselves.
func TestRandomFaults(t *testing.T) {
	delegations := 0
	for _, seed := range seeds(400) {
		w := newWorld(seed, 3, false)
		for at := time.Duration(0); at < 10*time.Minute; at += w.span(time.Second, 30*time.Second) {
			w.Run(at)
			w.change(time.Minute)
		}
		w.heal()
		w.Run(w.Now() + 3*time.Minute)
		for _, n := range w.nodes {
			s := w.cloud[n.name]
			if s.lease.Delegated || w.Now()-s.grew > 40*time.Second {
				w.fault("%s: delegated %t, last grew at %v", n.name, s.lease.Delegated, s.grew)
			}
		}
		w.report(t, seed)
		delegations += w.delegations
	}
	t.Logf("%d delegations began", delegations)
	if *seedFlag == 0 && delegations < 1000 {
		t.Errorf("only %d delegations began: the test shows nothing", delegations)
	}
}

// TestSkew: clocks that are a minute off and jump change no decision.
func TestSkew(t *testing.T) {
	for _, seed := range seeds(50) {
		run := func(skew time.Duration) *world {
			w := newWorld(seed, 3, false)
			for i, n := range w.nodes {
				n.wall = time.Duration(i-1) * skew
			}
			for at := time.Duration(0); at < 10*time.Minute; at += w.span(time.Second, 30*time.Second) {
				w.Run(at)
				w.change(skew)
			}
			w.report(t, seed)
			return w
		}
		right, wrong := run(0), run(time.Minute)
		for i := range right.trace {
			if i >= len(wrong.trace) || right.trace[i] != wrong.trace[i] {
				t.Fatalf("seed %d: decisions differ:\n%s\n%s", seed, right.trace[i], wrong.trace[min(i, len(wrong.trace)-1)])
			}
		}
		for _, n := range right.nodes {
			if a, b := right.cloud[n.name].grew, wrong.cloud[n.name].grew; a != b {
				t.Fatalf("seed %d: the Lease of %s grew last at %v, with skew at %v", seed, n.name, a, b)
			}
		}
	}
}

// TestLongestGap: a node that is cut off and returns, with another leader or a restart of the coordinator in the
// middle: its Lease in the cloud never stands still for longer than the budget.
func TestLongestGap(t *testing.T) {
	quick := Budget{Pool: time.Second, Request: time.Second}
	for name, c := range map[string]struct {
		budget Budget
		middle func(w *world)
	}{
		"cut off": {quick, func(*world) {}},
		"another leader, killed": {
			Budget{Pool: quick.Pool, Request: quick.Request, LeaderChange: 6 * time.Second}, func(w *world) {
				w.another(6 * time.Second)
			},
		},
		"another leader, Lease ran out": {
			Budget{Pool: quick.Pool, Request: quick.Request, LeaderChange: 17 * time.Second}, func(w *world) {
				w.another(17 * time.Second)
			},
		},
		"the coordinator restarts": {Budget{Pool: quick.Pool, Request: quick.Request, Cold: true}, func(w *world) {
			w.down = true
			for _, n := range w.nodes {
				n.watching = false
			}
			w.after(3*time.Second, func() { w.down = false })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			longest := time.Duration(0)
			for _, seed := range seeds(100) {
				w := newWorld(seed, 3, true)
				w.Run(time.Minute)
				cut := w.nodes[2]
				w.cloud[cut.name].judged = true
				w.after(w.span(0, 2*Interval), func() { cut.cut = true })
				w.after(w.span(0, 6*Interval), func() { c.middle(w) })
				w.after(w.span(8*Interval, 10*Interval), func() { cut.cut = false })
				w.Run(4 * time.Minute)
				s := w.cloud[cut.name]
				if s.longest > c.budget.Worst() || s.lease.Delegated || w.delegations == 0 {
					w.fault("longest %v of %v, delegated %t, %d delegations", s.longest, c.budget.Worst(), s.lease.Delegated,
						w.delegations)
				}
				w.report(t, seed)
				longest = max(longest, s.longest)
			}
			t.Logf("longest time without growth: %v; the budget is %v", longest.Round(time.Millisecond), c.budget.Worst())
		})
	}
}

// another takes the lead from the first node and gives it to the second one after some time.
func (w *world) another(after time.Duration) {
	w.nodes[0].fwd.Lead(false)
	w.after(after, func() {
		w.nodes[1].fwd.Lead(true)
		w.nodes[1].forward()
	})
}

// TestDeadKubelet: when the kubelet of a node that is cut off dies, its Lease stops to grow.
func TestDeadKubelet(t *testing.T) {
	for _, seed := range seeds(50) {
		w := newWorld(seed, 3, true)
		w.Run(time.Minute)
		n := w.nodes[2]
		n.cut = true
		w.Run(2 * time.Minute)
		n.alive, n.died = false, w.Now()
		w.Run(4 * time.Minute)
		if s := w.cloud[n.name]; s.grew > n.died+5*time.Second || s.grew < n.died-Slowest-time.Second {
			w.fault("its Lease last grew at %v, the kubelet died at %v", s.grew, n.died)
		}
		w.report(t, seed)
	}
}

// TestFirstSight: what a hub finds when it begins to watch is no heartbeat, however new it looks.
func TestFirstSight(t *testing.T) {
	f := NewForwarder(1)
	f.Lead(true)
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	lease := func(s int) Lease { return Lease{Version: "1", Renew: epoch.Add(at(s)), Delegated: true} }
	due := func(now int) []Kind {
		var kinds []Kind
		actions, _ := f.Next(at(now))
		for _, a := range actions {
			kinds = append(kinds, a.Kind)
		}
		return kinds
	}
	f.See(at(100), "a", lease(0), false)
	if got := due(100); got != nil {
		t.Fatalf("found: %v", got)
	}
	f.See(at(101), "a", lease(0), true) // something else about it changed
	if got := due(101); got != nil {
		t.Fatalf("no change of renewTime: %v", got)
	}
	f.See(at(102), "a", lease(-60), true) // its clock was set back
	if got := due(102); !slices.Equal(got, []Kind{ReadCloud}) {
		t.Fatalf("changed: %v", got)
	}
	f.Done(at(103), Result{Kind: ReadCloud, Node: "a", Outcome: Refused})
	f.See(at(200), "a", lease(50), false) // the watch broke for long
	if got := due(200); got != nil {
		t.Fatalf("changed some time in 98 s: %v", got)
	}
	f.See(at(205), "a", lease(60), false)
	if got := due(205); !slices.Equal(got, []Kind{ReadCloud}) {
		t.Fatalf("changed within 5 s: %v", got)
	}
	if _, wake := f.Next(at(206)); wake > at(200)+Life+tick {
		t.Errorf("it may be of %v and is kept until %v", at(200), wake)
	}
	f.See(at(300), "b", lease(0), true)
	f.Done(at(300), Result{Kind: ReadCloud, Node: "a", Outcome: Refused})
	if got := due(300); !slices.Equal(got, []Kind{ReadCloud}) || f.Delegated() != 2 {
		t.Fatalf("a new one: %v of %d", got, f.Delegated())
	}
}
