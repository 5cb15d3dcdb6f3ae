package report

import "slices"

// ByteRow is the traffic of one way, class, direction, phase, pool and node.
type ByteRow struct {
	Way       string `json:"way"`
	Class     string `json:"class"`     // pool, node, heartbeat, control, image
	Direction string `json:"direction"` // Down or Up
	Phase     string `json:"phase,omitempty"`
	Node      string `json:"node,omitempty"`
	Pool      string `json:"pool,omitempty"` // of the scenario, in every way; empty: there is one
	Bytes     int64  `json:"bytes"`
}

// ByteTable is the traffic of a run over the links between cloud and edge. Its rows do not overlap.
type ByteTable []ByteRow

// Sum adds up the rows that agree with each field of match that is not empty; match.Bytes is ignored.
func (t ByteTable) Sum(match ByteRow) int64 {
	var sum int64
	for _, row := range t {
		if agrees(match.Way, row.Way) && agrees(match.Class, row.Class) && agrees(match.Direction, row.Direction) &&
			agrees(match.Phase, row.Phase) && agrees(match.Node, row.Node) && agrees(match.Pool, row.Pool) {
			sum += row.Bytes
		}
	}
	return sum
}

func agrees(want, got string) bool { return want == "" || want == got }

func (t ByteTable) classes() []string {
	return distinct(t, func(r ByteRow) string { return r.Class }, "pool", "node", "heartbeat", "control", "image")
}

// phases are in the order in which the runner reported them.
func (t ByteTable) phases() []string {
	var phases []string
	for _, row := range t {
		if row.Phase != "" && !slices.Contains(phases, row.Phase) {
			phases = append(phases, row.Phase)
		}
	}
	return phases
}

func (t ByteTable) pools() []string {
	return distinct(t, func(r ByteRow) string { return r.Pool })
}

func (t ByteTable) nodes() []string {
	nodes := distinct(t, func(r ByteRow) string { return r.Node })
	slices.SortFunc(nodes, compareNames)
	return nodes
}

// ways returns the ways that anything in r belongs to: stock and Weir first, the reference after them.
func (r Result) ways() []string {
	all := make([]string, 0, len(r.Bytes)+len(r.Series)+len(r.Clients))
	for _, b := range r.Bytes {
		all = append(all, b.Way)
	}
	for _, s := range r.Series {
		all = append(all, s.Way)
	}
	for _, c := range r.Clients {
		all = append(all, c.Way)
	}
	return distinct(all, func(way string) string { return way }, WayStock, WayWeir, WayReference)
}

// wayName is how a way is called in a report.
func wayName(way string) string {
	if way == WayWeir {
		return "Weir"
	}
	return way
}

// series adds up the series of a way in a direction ("": both); nil if there are none.
func (r Result) series(way, direction string) []float64 {
	var sum []float64
	for _, s := range r.Series {
		if s.Way != way || !agrees(direction, s.Direction) {
			continue
		}
		if missing := len(s.Bytes) - len(sum); missing > 0 {
			sum = append(sum, make([]float64, missing)...)
		}
		for i, n := range s.Bytes {
			sum[i] += float64(max(n, 0))
		}
	}
	return sum
}
