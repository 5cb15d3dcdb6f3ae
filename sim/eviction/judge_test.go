package eviction

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/scenario"
)

// began is when the first fault begins in all cases.
var began = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

// span is from one second to another; 0: to the end.
func span(from, to float64) Span {
	s := Span{From: at(from)}
	if to > 0 {
		s.To = at(to)
	}
	return s
}

// quiet is a history of three nodes in which nothing happens for 600 s: heartbeats come, pods stay.
func quiet() *History {
	h := &History{
		Timers: cloud.StockTimers(), Nodes: []string{"a", "b", "c"}, Began: began, Ended: at(600),
		Dead: map[string][]Span{}, CutOff: map[string][]Span{}, Policy: []PolicyChange{{}},
		Ready: map[string][]Flip{}, Marks: map[string][]Mark{}, Heartbeats: map[string][]Heartbeat{},
	}
	for _, n := range h.Nodes {
		h.Pods = append(h.Pods, Pod{Name: "pod-" + n, Node: n, Since: at(-60)})
		h.Ready[n] = []Flip{{At: at(-60), Ready: true}}
		h.Marks[n] = []Mark{{At: at(-60)}}
		h.beats(n, -60, 600, false)
	}
	return h
}

// beats has a node renew its Lease every 10 s in a time; what it had in it goes.
func (h *History) beats(node string, from, to float64, delegated bool) {
	kept := h.Heartbeats[node]
	h.Heartbeats[node] = nil
	for _, b := range kept {
		if b.At.Before(at(from)) {
			h.Heartbeats[node] = append(h.Heartbeats[node], b)
		}
	}
	for s := from; s < to; s += 10 {
		h.Heartbeats[node] = append(h.Heartbeats[node], Heartbeat{At: at(s), Delegated: delegated})
	}
}

// evict deletes the pod of a node.
func (h *History) evict(node string, seconds float64) {
	for i := range h.Pods {
		if h.Pods[i].Node == node {
			h.Pods[i].Deleted = at(seconds)
		}
	}
}

func (h *History) cutPool(from, to float64) {
	for _, n := range h.Nodes {
		h.CutOff[n] = append(h.CutOff[n], span(from, to))
		h.beats(n, from, from, false)
		if to > 0 {
			h.beats(n, to, 600, false)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(h *History)
		want Verdict
	}{
		{"nothing happens", func(*History) {}, Verdict{}},
		{"a pod of a node that lives is evicted", func(h *History) { h.evict("a", 400) }, Verdict{Evicted: 1, Wrong: 1}},
		{"a dead node's pod goes in time", func(h *History) {
			h.Dead["a"] = []Span{span(5, 0)}
			h.beats("a", 5, 5, false)
			h.Ready["a"] = append(h.Ready["a"], Flip{At: at(55)})
			h.evict("a", 360)
		}, Verdict{Evicted: 1, NotReady: 1, DeadMoved: 355 * time.Second}},
		{"a dead node's pod stays", func(h *History) {
			h.Dead["a"] = []Span{span(5, 0)}
			h.beats("a", 5, 5, false)
		}, Verdict{Missed: 1}},
		{"a dead node's pod stays that tolerates it", func(h *History) {
			h.Dead["a"] = []Span{span(5, 0)}
			h.beats("a", 5, 5, false)
			for i := range h.Pods {
				h.Pods[i].Stays = true
			}
		}, Verdict{}},
		{"a dead node's pod goes too late", func(h *History) {
			h.Dead["a"] = []Span{span(5, 0)}
			h.beats("a", 5, 5, false)
			h.evict("a", 500)
		}, Verdict{Evicted: 1, Missed: 1, DeadMoved: 495 * time.Second}},
		{"a node returns before its pod would go", func(h *History) {
			h.Dead["a"] = []Span{span(5, 100)}
			h.beats("a", 5, 5, false)
			h.beats("a", 105, 600, false)
		}, Verdict{}},
		{"a node that is cut off is delegated, shown and kept", func(h *History) {
			h.CutOff["a"] = []Span{span(2, 500)}
			h.beats("a", 3, 3, false)
			h.beats("a", 17, 500, true)
			h.beats("a", 505, 600, false)
			h.Marks["a"] = append(h.Marks["a"], Mark{At: at(17), Taint: true}, Mark{At: at(18), Taint: true, Condition: true},
				Mark{At: at(506)})
		}, Verdict{Detected: 15 * time.Second}},
		{"a node that is cut off is forgotten", func(h *History) {
			h.CutOff["a"] = []Span{span(2, 500)}
			h.beats("a", 3, 3, false)
			h.beats("a", 505, 600, false)
			h.Ready["a"] = append(h.Ready["a"], Flip{At: at(50)}, Flip{At: at(510), Ready: true})
			h.evict("a", 351)
		}, Verdict{Evicted: 1, Wrong: 1, NotReady: 1, Unjust: 1, Late: 1, Unmarked: 1, Detected: 498 * time.Second}},
		{"it is back and still shown", func(h *History) {
			h.CutOff["a"] = []Span{span(2, 300)}
			h.beats("a", 2, 300, true)
			h.beats("a", 305, 600, false)
			h.Marks["a"] = append(h.Marks["a"], Mark{At: at(12), Taint: true, Condition: true})
		}, Verdict{MarkedLeft: 1, Detected: 10 * time.Second}},
		{"the cloud is away for a while", func(h *History) {
			h.Away = []Span{span(100, 140)}
			h.beats("a", 95, 95, false)
			h.beats("a", 145, 600, false)
		}, Verdict{}},
		{"a silent pool is kept", func(h *History) {
			h.cutPool(2, 500)
			h.Ready["a"] = append(h.Ready["a"], Flip{At: at(52)}, Flip{At: at(505), Ready: true})
		}, Verdict{NotReady: 1}},
		{"a pool is back, and its heartbeats are not", func(h *History) {
			h.cutPool(100, 108)
			h.beats("a", 100, 100, false)
			h.beats("a", 170, 600, false)
		}, Verdict{Late: 1}},
		{
			"a silent pool is evicted though it is kept", func(h *History) { h.cutPool(2, 0); h.evict("b", 360) },
			Verdict{Evicted: 1, Wrong: 1},
		},
		{"a silent pool is evicted when its policy says so", func(h *History) {
			h.Policy = []PolicyChange{{Policy: scenario.Policy{Evict: true, After: 400 * time.Second}}}
			h.cutPool(2, 0)
			for _, n := range h.Nodes {
				h.evict(n, 410)
			}
		}, Verdict{Evicted: 3}},
		{"a silent pool is evicted too early", func(h *History) {
			h.Policy = []PolicyChange{{Policy: scenario.Policy{Evict: true, After: 400 * time.Second}}}
			h.cutPool(2, 0)
			for _, n := range h.Nodes {
				h.evict(n, 360)
			}
		}, Verdict{Evicted: 3, Wrong: 3}},
		{"a silent pool is never evicted though its policy says so", func(h *History) {
			h.Policy = []PolicyChange{{Policy: scenario.Policy{Evict: true, After: 400 * time.Second}}}
			h.cutPool(2, 0)
		}, Verdict{Missed: 3}},
		{"a policy changes while the pool is silent, and counts from then on", func(h *History) {
			h.Policy = append(h.Policy, PolicyChange{At: at(450), Policy: scenario.Policy{Evict: true, After: time.Minute}})
			h.cutPool(2, 0)
			h.evict("a", 440)
			h.evict("b", 460)
		}, Verdict{Evicted: 2, Wrong: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := quiet()
			c.do(h)
			got := Judge(h)
			if bad := got.Wrong + got.Missed + got.Unjust + got.Late + got.Unmarked + got.MarkedLeft; bad != len(got.Details) {
				t.Errorf("%d things are wrong, and told are %q", bad, got.Details)
			}
			details := got.Details
			got.Details = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%q", diff, details)
			}
		})
	}
}

// TestPoolSilent: all of a pool is silent when each node is, for whatever reason.
func TestPoolSilent(t *testing.T) {
	h := quiet()
	h.CutOff["a"] = []Span{span(10, 100), span(200, 300)}
	h.CutOff["b"] = []Span{span(20, 60)}
	h.Dead["b"] = []Span{span(50, 90)}
	h.Dead["c"] = []Span{span(0, 0)}
	want := []Span{span(20, 90)}
	if got := h.poolSilent(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPerSecond: what crossed before and after a span is not of it, and neither is what crossed the other way.
func TestPerSecond(t *testing.T) {
	traffic := []link.Sample{
		{At: at(0), Class: heartbeatClass, Dir: link.Down, Bytes: 1000},
		{At: at(10), Class: heartbeatClass, Dir: link.Down, Bytes: 30},
		{At: at(10), Class: heartbeatClass, Dir: link.Up, Bytes: 50},
		{At: at(19), Class: "node", Dir: link.Down, Bytes: 70}, {At: at(20), Class: "node", Dir: link.Down, Bytes: 1000},
	}
	for _, c := range []struct {
		name string
		of   func(link.Sample) bool
		in   Span
		want float64
	}{
		{"heartbeats", heartbeats, span(10, 20), 8}, {"from the cloud", fromCloud, span(10, 20), 10},
		{"no span", fromCloud, Span{}, 0},
	} {
		if got := perSecond(traffic, c.in, c.of); got != c.want {
			t.Errorf("%s: %v bytes a second, want %v", c.name, got, c.want)
		}
	}
}
