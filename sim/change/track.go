package change

import (
	"fmt"
	"slices"
)

// Track is what happened in one run, in lanes one above the other.
type Track struct {
	Title   string  `json:"title"`
	Seconds float64 `json:"seconds"` // that the lanes last
	Lanes   []Lane  `json:"lanes"`
	Marks   []Mark  `json:"marks,omitempty"` // across all lanes
}

// Lane is one line of a Track: stretches, moments, or amounts in each second.
type Lane struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"` // of Kinds of lanes
	Spans   []Span    `json:"spans,omitempty"`
	Moments []Mark    `json:"moments,omitempty"`
	Amounts []float64 `json:"amounts,omitempty"`
	Unit    string    `json:"unit,omitempty"` // of the amounts
}

// The kinds of lanes.
const (
	LaneLink    = "link"
	LaneRole    = "role"
	LaneCache   = "cache"
	LaneStreams = "streams"
)

// Span is a stretch of time.
type Span struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	State string  `json:"state"`
	Tip   string  `json:"tip,omitempty"`
}

// Mark is a moment.
type Mark struct {
	At    float64 `json:"at"`
	Label string  `json:"label"`
	Bad   bool    `json:"bad,omitempty"`
}

// most is the largest amount of a second, as text.
func (l Lane) most() string { return "to " + Format(slices.Max(l.Amounts), l.Unit) + "/s" }

// extent of runs that lie beside one another: the longest, and the largest amount of each lane, by which all are drawn.
func extent(runs []Run) (last float64, most map[string]float64) {
	most = map[string]float64{}
	for _, run := range runs {
		last = max(last, run.Track.Seconds)
		for _, l := range run.Track.Lanes {
			most[l.Name] = max(most[l.Name], slices.Max(append([]float64{1}, l.Amounts...)))
		}
	}
	return last, most
}

// first is the first moment that is bad.
func (t *Track) first() (at float64, label string, ok bool) {
	var all []Mark
	for _, l := range t.Lanes {
		all = append(all, l.Moments...)
	}
	for _, m := range all {
		if m.Bad && (!ok || m.At < at) {
			at, label, ok = m.At, m.Label, true
		}
	}
	return at, label, ok
}

// track is the scenario whose picture says most: the first that the head broke, else the first that both sides ran.
func (r *Report) track() (runs []Run, ok bool) {
	var with []Run
	for _, run := range r.Runs {
		if run.Track != nil && len(run.Track.Lanes) > 0 {
			with = append(with, run)
		}
	}
	for _, head := range slices.Concat(r.Sum().Broken, preferred(with)) {
		if head.Track == nil {
			continue
		}
		if i := slices.IndexFunc(with, func(run Run) bool {
			return run.Scenario == head.Scenario && run.Side == SideBase
		}); i >= 0 {
			runs = append(runs, with[i])
		}
		return append(runs, head), true
	}
	return nil, false
}

// preferred are runs of the head, those in which a leader changes first.
func preferred(with []Run) []Run {
	changes := func(run Run) int {
		n := 0
		for _, l := range run.Track.Lanes {
			if l.Kind == LaneRole {
				n += len(l.Spans)
			}
		}
		return n
	}
	head := slices.DeleteFunc(slices.Clone(with), func(run Run) bool { return run.Side != SideHead })
	slices.SortStableFunc(head, func(a, b Run) int { return changes(b) - changes(a) })
	return head
}

// caption of a run above its lanes.
func (r Run) caption() string {
	verdict := "passed"
	if !r.Passed {
		verdict = "failed"
	}
	return fmt.Sprintf("%s: %s, seed %d, %s", r.Side, r.Scenario, r.Seed, verdict)
}
