package report

import (
	"fmt"
	"math"
	"slices"
)

// Fault is one fault that happened and was healed. Times are in seconds; 0 is not measured.
type Fault struct {
	At     float64 `json:"at"` // since the way began
	Name   string  `json:"name"`
	Target string  `json:"target"` // hub/harbour-3, pool, …
	Lasted float64 `json:"lasted"` // until it was healed

	Leader    bool    `json:"leader,omitempty"` // it happened to the leader
	Reached   float64 `json:"reached"`          // from its beginning until a marker written then was everywhere
	Detect    float64 `json:"detect,omitempty"` // of the leader: until the coordinator took the lead from it
	Elect     float64 `json:"elect,omitempty"`  // from then until another one led
	Resume    float64 `json:"resume,omitempty"` // from then until the marker was everywhere
	Recovered float64 `json:"recovered"`        // from its end until a marker written then was everywhere
	// from its beginning until a new connection of class pool brought the cloud its first byte.
	Grace float64 `json:"grace,omitempty"`
	Fresh float64 `json:"fresh,omitempty"` // from its end until every cache of the pool held what was written then

	CloudBytes  int64 `json:"cloudBytes"` // of class pool, beyond the changes
	Connections int   `json:"connections"`
	Streams     int   `json:"streams"` // that were waited for; clients of nodes that cannot be served are not
}

// Percentile is the nearest-rank percentile of values: the least one that p per cent of them do not exceed. NaN without
// values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// faultLimit bounds the faults that are shown one by one.
const faultLimit = 30

func (r Result) faultTable() table {
	t := table{Columns: []column{
		{Title: "at", Right: true}, {Title: "fault"}, {Title: "what was hit"}, {Title: "lasted, s", Right: true},
		{Title: "marker everywhere, s", Right: true}, {Title: "streams", Right: true},
		{Title: "healed → marker everywhere, s", Right: true}, {Title: "pool bytes beyond the changes", Right: true},
		{Title: "connections", Right: true},
	}}
	for _, f := range r.Faults[:min(len(r.Faults), faultLimit)] {
		t.Rows = append(t.Rows, row{
			Cells: texts(fmt.Sprintf("%.2f s", f.At), f.Name, f.Target, fmt.Sprintf("%.2f", f.Lasted), orNone(f.Reached),
				fmt.Sprint(f.Streams), orNone(f.Recovered), UnitBytes.Format(float64(f.CloudBytes)), fmt.Sprint(f.Connections)),
		})
	}
	if more := len(r.Faults) - len(t.Rows); more > 0 {
		t.Note = fmt.Sprintf("The first %s; %s more are in %s.", count(int64(len(t.Rows))), count(int64(more)), resultFile)
	}
	return t
}

func orNone(seconds float64) string {
	if seconds == 0 {
		return none
	}
	return fmt.Sprintf("%.2f", seconds)
}

// failoverTable is the distribution of leader changes, in the order of their parts.
func (r Result) failoverTable() table {
	parts := []struct {
		title string
		of    func(Fault) float64
	}{
		{"leader lost → marker everywhere", func(f Fault) float64 { return f.Reached }},
		{"detect: the coordinator takes the lead from it", func(f Fault) float64 { return f.Detect }},
		{"elect: another hub leads", func(f Fault) float64 { return f.Elect }},
		{"resume: the marker is everywhere", func(f Fault) float64 { return f.Resume }},
	}
	t := table{Columns: []column{{Title: "seconds"}, {Title: "measured", Right: true}}}
	for _, p := range []string{"least", "p50", "p90", "p99", "most"} {
		t.Columns = append(t.Columns, column{Title: p, Right: true})
	}
	for i, part := range parts {
		var values []float64
		for _, f := range r.Faults {
			if v := part.of(f); f.Leader && v > 0 {
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			continue
		}
		cells := texts(part.title, count(int64(len(values))))
		for _, p := range []float64{0, 50, 90, 99, 100} {
			cells = append(cells, text(fmt.Sprintf("%.3f", Percentile(values, p))))
		}
		t.Rows = append(t.Rows, row{Cells: cells, Total: i == 0})
	}
	return t
}
