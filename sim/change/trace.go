package change

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/timeline"
)

// maxMoments of a lane are shown.
const maxMoments = 200

// NewTrack draws a run from its result and its timeline: the link, the role of each hub, where each reads, and the
// streams of each node's clients.
func NewTrack(res report.Result, events []timeline.Event) *Track {
	t := &Track{Title: res.Scenario}
	began := beginning(res, events)
	for _, e := range events {
		t.Seconds = max(t.Seconds, e.At.Seconds()-began)
	}
	link := Lane{Name: "link, class pool", Kind: LaneLink, Unit: "B"}
	rest := Lane{Name: "link, other classes", Kind: LaneLink, Unit: "B"}
	for _, s := range res.Series {
		if s.Way != report.WayWeir {
			continue
		}
		l := &rest
		if s.Class == "pool" {
			l = &link
		}
		for len(l.Amounts) < len(s.Bytes) {
			l.Amounts = append(l.Amounts, 0)
		}
		for i, n := range s.Bytes {
			l.Amounts[i] += float64(max(n, 0))
		}
		t.Seconds = max(t.Seconds, float64(len(s.Bytes)))
	}
	for _, l := range []Lane{link, rest} {
		if len(l.Amounts) > 0 {
			t.Lanes = append(t.Lanes, l)
		}
	}
	t.Lanes = append(t.Lanes, t.states(events, began, "role", LaneRole)...)
	t.Lanes = append(t.Lanes, t.states(events, began, "source", LaneCache)...)
	t.Lanes = append(t.Lanes, t.streams(res, events)...)
	for _, m := range res.Marks {
		if m.Way == report.WayWeir && m.Fault {
			t.Marks = append(t.Marks, Mark{At: m.Seconds, Label: m.Label})
		}
	}
	return t
}

// beginning is when the way of Weir began, in seconds of the timeline: both tell of the first phase.
func beginning(res report.Result, events []timeline.Event) float64 {
	for _, m := range res.Marks {
		if m.Way != report.WayWeir || m.Fault {
			continue
		}
		for _, e := range events {
			if e.Lane == timeline.Phase && e.Name == m.Label {
				return e.At.Seconds() - m.Seconds
			}
		}
	}
	return 0
}

// states are lanes of what hubs say of themselves.
func (t *Track) states(events []timeline.Event, began float64, of, kind string) (lanes []Lane) {
	at := map[string]int{}
	for _, e := range events {
		if e.Lane != timeline.Leader || e.Name != "hub" {
			continue
		}
		i, ok := at[e.Node]
		if !ok {
			i = len(lanes)
			at[e.Node] = i
			title := e.Node + " is"
			if kind == LaneCache {
				title = e.Node + " reads"
			}
			lanes = append(lanes, Lane{Name: title, Kind: kind})
		}
		now := max(e.At.Seconds()-began, 0)
		l := &lanes[i]
		if n := len(l.Spans); n > 0 {
			if l.Spans[n-1].State == e.Strings[of] {
				continue
			}
			l.Spans[n-1].To = now
		}
		l.Spans = append(l.Spans, Span{From: now, To: t.Seconds, State: e.Strings[of], Tip: e.Strings["reason"]})
	}
	slices.SortStableFunc(lanes, func(a, b Lane) int { return cmp.Compare(a.Name, b.Name) })
	return lanes
}

// streams are lanes of what clients saw: violations where they were, lists that they repeated at the end, where they
// are counted.
func (t *Track) streams(res report.Result, events []timeline.Event) (lanes []Lane) {
	at := map[string]int{}
	lane := func(node string) *Lane {
		i, ok := at[node]
		if !ok {
			i = len(lanes)
			at[node] = i
			lanes = append(lanes, Lane{Name: node + " streams", Kind: LaneStreams})
		}
		return &lanes[i]
	}
	for _, c := range res.Clients {
		if c.Way == report.WayWeir {
			l := lane(c.Node)
			if len(l.Spans) == 0 {
				l.Spans = []Span{{From: 0, To: t.Seconds, State: "follower", Tip: "clients watch"}}
			}
		}
	}
	for _, v := range res.Violations {
		if v.Way == report.WayWeir {
			l := lane(v.Node)
			l.Moments = append(l.Moments, Mark{
				At: v.Seconds, Label: fmt.Sprintf("%s: %s: %s", v.Client, v.Rule, v.Detail), Bad: true,
			})
		}
	}
	for _, e := range events {
		if e.Lane == timeline.Client && e.Way == report.WayWeir && e.Name == "re-listed" {
			l := lane(e.Node)
			l.Moments = append(l.Moments, Mark{
				At: t.Seconds, Label: fmt.Sprintf("%s listed %s again, %g times: %s", e.Strings["client"], e.Strings["resource"],
					e.Numbers["times"], e.Strings["cause"]),
			})
		}
	}
	for i := range lanes {
		lanes[i].Moments = lanes[i].Moments[:min(len(lanes[i].Moments), maxMoments)]
	}
	slices.SortStableFunc(lanes, func(a, b Lane) int { return cmp.Compare(a.Name, b.Name) })
	return lanes
}

// NewRun is what a report says of a run of a scenario on a side.
func NewRun(side, file, dir string, res report.Result, events []timeline.Event) Run {
	r := Run{
		Scenario: res.Scenario, Side: side, Seed: res.Seed, File: file, Repeat: res.Repeat, Dir: dir, Seconds: res.Seconds,
		Passed: res.Passed, Error: res.Error,
		Violations: int(res.Metrics["watch_violations"]), Track: NewTrack(res, events),
	}
	for _, e := range res.Expectations {
		if !e.Passed {
			r.Failed = append(r.Failed, fmt.Sprintf("%s: got %s, want %s", e.Name, e.Got, e.Want))
		}
	}
	for _, v := range res.Violations {
		if v.Way == report.WayWeir && (r.First == nil || v.Seconds < r.First.Seconds) {
			r.First = &Broken{v.Seconds, v.Client + " on " + v.Node, v.Rule, v.Detail}
		}
	}
	return r
}

// ScenarioFigures are the metrics of a scenario that do not depend on how fast the machine is, of runs of both sides.
func ScenarioFigures(base, head []report.Result, repeat string) (figures []Figure) {
	if len(base) == 0 || len(head) == 0 {
		return nil
	}
	for _, m := range []struct {
		name, unit string
		kind       Kind
	}{
		{"pool_bytes_ratio", "ratio", Bytes}, {"total_bytes_ratio", "ratio", Bytes}, {"client_relists", "", Count},
		{"late_markers", "", Count},
		{"coordinator_rss_anon_bytes", "B", Memory}, {"hub_rss_anon_bytes_max", "B", Memory},
	} {
		f := Figure{Subject: head[0].Scenario, Name: m.name, Unit: m.unit, Kind: m.kind, Repeat: repeat}
		of := func(results []report.Result) [][]float64 {
			var samples []float64
			for _, r := range results {
				if v, ok := r.Metrics[m.name]; ok {
					samples = append(samples, v)
				}
			}
			if samples == nil {
				return nil
			}
			return [][]float64{samples}
		}
		if f.Base, f.Head = of(base), of(head); f.Base != nil || f.Head != nil {
			figures = append(figures, f)
		}
	}
	return figures
}
