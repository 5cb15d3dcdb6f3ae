package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/routes"
)

const (
	s    = time.Second
	pod  = "app"
	old  = "10.0.0.1"
	here = "10.0.0.2"
)

var begin = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return begin.Add(d) }

// truth is a pod whose machine has no power from 10 s to 20 s, and that runs elsewhere from 22 s on.
func truth() []routes.Life {
	t := routes.NewTruth()
	t.Runs(pod, "a", old, at(1*s))
	t.Runs(pod, "a", old, at(1*s))
	t.Off("a", at(10*s))
	t.Runs(pod, "a", old, at(1*s)) // somebody asked before
	t.On("a", at(20*s))
	t.Runs(pod, "a", here, at(22*s))
	return t.Lives()
}

// shown is what a client sees of the pod's one slice, as pairs of a time and "address", "address unready", or "".
func shown(from time.Duration, steps ...any) routes.Client {
	c := routes.Client{Node: "b", Kind: routes.Informs, From: at(from)}
	for i := 0; i < len(steps); i += 2 {
		x := routes.Shown{At: at(steps[i].(time.Duration)), Slice: "one"}
		if text := steps[i+1].(string); text != "" {
			address, unready := strings.CutSuffix(text, " unready")
			x.Pods = map[string][]routes.Endpoint{pod: {{Address: address, Ready: !unready}}}
		}
		c.Shown = append(c.Shown, x)
	}
	return c
}

func TestTruth(t *testing.T) {
	want := []routes.Life{
		{Pod: pod, Node: "a", Address: old, From: at(1 * s), To: at(10 * s)},
		{Pod: pod, Node: "a", Address: here, Power: at(20 * s), From: at(22 * s)},
	}
	if diff := cmp.Diff(want, truth()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJudge: by the rules a wrong address may be shown for 10 s, and the dead as ready for 5 s.
func TestJudge(t *testing.T) {
	another := shown(1*s, 1*s, old)
	another.Node = "a"
	ended := shown(1*s, 1*s, old)
	ended.To = at(14 * s)
	two := shown(1*s, 1*s, old, 23*s, here)
	two.Shown = append(two.Shown, routes.Shown{At: at(30 * s), Slice: "two", Pods: map[string][]routes.Endpoint{
		pod: {{Address: old, Ready: false}},
	}})
	for name, c := range map[string]struct {
		client routes.Client
		late   time.Duration
		want   routes.Verdict // without times and lines
	}{
		"right in time":         {shown(1*s, 1*s, old, 14*s, old+" unready", 25*s, here), 3 * s, routes.Verdict{}},
		"gone, and back":        {shown(1*s, 1*s, old, 12*s, "", 25*s, here), 3 * s, routes.Verdict{}},
		"ready before it runs":  {shown(1*s, 1*s, old, 12*s, "", 21*s, here), 0, routes.Verdict{Dead: 1}},
		"late, not ready":       {shown(1*s, 1*s, old, 14*s, old+" unready", 40*s, here), 18 * s, routes.Verdict{}},
		"at the right, unready": {shown(1*s, 1*s, old, 14*s, here+" unready", 26*s, here), 4 * s, routes.Verdict{}},
		"dead for too long":     {shown(1*s, 1*s, old, 16*s, "", 25*s, here), 3 * s, routes.Verdict{Dead: 1}},
		"never":                 {shown(1*s, 1*s, old), 38 * s, routes.Verdict{Dead: 1, Wrong: 1}},
		"never, and not ready":  {shown(1*s, 1*s, old, 12*s, old+" unready"), 38 * s, routes.Verdict{}},
		"back": {
			shown(1*s, 1*s, old, 12*s, "", 23*s, here, 25*s, old, 26*s, here), 1 * s, routes.Verdict{Back: 1},
		},
		"back for long": {
			shown(1*s, 1*s, old, 12*s, "", 23*s, here, 25*s, old), 1 * s, routes.Verdict{Back: 1, Wrong: 1},
		},
		"a second slice, unready":          {two, 1 * s, routes.Verdict{Dead: 1, Back: 1}},
		"a client of that node":            {another, 0, routes.Verdict{Dead: 1, Wrong: 1}},
		"a client that ended":              {ended, 0, routes.Verdict{}},
		"a client that began, first wrong": {shown(50*s, 50*s, old, 55*s, here), 0, routes.Verdict{}},
	} {
		got := routes.Judge(truth(), []routes.Client{c.client}, routes.Rules{Wrong: 10 * s, Dead: 5 * s, Slow: 3 * s},
			at(60*s))
		if len(got.Moved) != 1 || got.Moved[0] != c.late || got.P99() != c.late {
			t.Errorf("%s: moved after %v, want %v", name, got.Moved, c.late)
		}
		if n := got.Wrong + got.Dead + got.Back; len(got.Lines) != n {
			t.Errorf("%s: %q, want %d lines", name, got.Lines, n)
		}
		if (len(got.Slow) > 0) != (c.late > 3*s) {
			t.Errorf("%s: slow after %v: %q", name, c.late, got.Slow)
		}
		got.Moved, got.Lines, got.Slow = nil, nil, nil
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestJudgeOfSeveral: the last client counts, and with FromPower the time in which no container could start.
func TestJudgeOfSeveral(t *testing.T) {
	clients := []routes.Client{
		shown(1*s, 1*s, old, 14*s, "", 28*s, here), shown(1*s, 1*s, old, 14*s, "", 25*s, here),
	}
	for fromPower, want := range map[bool]time.Duration{false: 6 * s, true: 8 * s} {
		v := routes.Judge(truth(), clients, routes.Rules{Wrong: 10 * s, Dead: 5 * s, FromPower: fromPower}, at(60*s))
		if diff := cmp.Diff([]time.Duration{want}, v.Moved); diff != "" {
			t.Errorf("from power: %v (-want +got):\n%s", fromPower, diff)
		}
	}
	if got := (routes.Verdict{}).P99(); got != 0 {
		t.Errorf("of none: %v", got)
	}
}

// TestSame: a pod that has the address that it had before has not moved.
func TestSame(t *testing.T) {
	book := routes.NewTruth()
	book.Runs(pod, "a", old, at(1*s))
	book.Off("a", at(10*s))
	book.Runs(pod, "a", old, at(22*s))
	v := routes.Judge(book.Lives(), []routes.Client{shown(1*s, 1*s, old)}, routes.Rules{Wrong: s, Dead: 20 * s}, at(60*s))
	if diff := cmp.Diff(routes.Verdict{}, v); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJudgeCalls: a pod is late until it answers who calls it, from another node. A call that fails is late while all
// pods have been at their addresses for long.
func TestJudgeCalls(t *testing.T) {
	caller := func(answers ...routes.Answer) routes.Client {
		return routes.Client{
			Node: "b", Kind: routes.Resolves, From: at(2 * s), Calls: map[string]bool{pod: true}, Answers: answers,
			Failures: []routes.Failure{
				{at(3 * s), at(3 * s)}, {at(8 * s), at(8 * s)}, {at(9 * s), at(11 * s)}, {at(15 * s), at(15 * s)},
				{at(26 * s), at(26 * s)}, {at(28 * s), at(29 * s)},
			},
		}
	}
	other := caller()
	other.Calls = map[string]bool{"another": true}
	for name, c := range map[string]struct {
		client routes.Client
		late   time.Duration
	}{
		"by its name": {
			caller(routes.Answer{At: at(9 * s), Address: old, Pod: pod}, routes.Answer{At: at(25 * s), Address: here, Pod: pod}),
			3 * s,
		},
		"DNS does not say who it is":   {caller(routes.Answer{At: at(24 * s), Address: here}), 2 * s},
		"another pod at that address":  {caller(routes.Answer{At: at(24 * s), Address: here, Pod: "x"}), 38 * s},
		"who had the address before":   {caller(routes.Answer{At: at(21 * s), Address: here, Pod: pod}), 38 * s},
		"never":                        {caller(routes.Answer{At: at(24 * s), Address: old, Pod: pod}), 38 * s},
		"a client that calls it never": {other, 0},
	} {
		got := routes.Judge(truth(), []routes.Client{c.client}, routes.Rules{Wrong: 10 * s, Dead: 5 * s, Settled: 5 * s},
			at(60*s))
		want := routes.Verdict{Moved: []time.Duration{c.late}, LateCalls: 2} // at 8 s and 28 s
		got.Lines, got.Slow = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
