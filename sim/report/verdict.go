package report

import (
	"fmt"
	"slices"
	"strings"
)

// verdict is "passed" or "failed".
func (r Result) verdict() string {
	if r.Passed {
		return "passed"
	}
	return "failed"
}

// grounds says in one sentence why.
func (r Result) grounds() string {
	var failed []string
	for _, e := range r.Expectations {
		if !e.Passed {
			failed = append(failed, e.Name)
		}
	}
	total := len(r.Expectations)
	switch {
	case r.Error != "":
		return "The run ended early: " + strings.TrimRight(oneLine(r.Error), ".") + "."
	case len(failed) > 0:
		const shown = 5
		names := strings.Join(failed[:min(len(failed), shown)], ", ")
		if len(failed) > shown {
			names += ", …"
		}
		return fmt.Sprintf("%d of %s did not hold: %s.", len(failed), plural(total, "expectation", "expectations"), names)
	case !r.Passed:
		return "The run did not pass, though no expectation failed."
	case total == 0:
		return "The scenario states no expectation."
	case total == 1:
		return "The one expectation held."
	}
	return fmt.Sprintf("All %d expectations held.", total)
}

// lead is what a reader is told first, sentence by sentence: what the run is about if it passed, and else why it did
// not.
func (r Result) lead() []string {
	all := []string{r.grounds(), r.point(), r.headline()}
	if r.Passed {
		about := slices.IndexFunc(all[1:], func(s string) bool { return s != "" }) + 1
		all[0], all[about] = all[about], all[0]
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// headline says in one sentence what crossed the uplink; empty if nothing was counted.
func (r Result) headline() string {
	bytes := func(way string) int64 { return r.Bytes.Sum(ByteRow{Way: way}) }
	stock, weir, reference := bytes(WayStock), bytes(WayWeir), bytes(WayReference)
	if weir <= 0 {
		return ""
	}
	s := "The uplink carried " + UnitBytes.Format(float64(weir)) + " with Weir"
	if stock > 0 {
		s += " and " + UnitBytes.Format(float64(stock)) + " without it"
		if stock > weir {
			s += fmt.Sprintf(", %.1f times as much", float64(stock)/float64(weir))
		}
	}
	if reference > 0 {
		s += "; one informer per resource alone, the reference, takes " + UnitBytes.Format(float64(reference))
	}
	return s + "."
}

// tile is one figure that is shown large.
type tile struct {
	Value, Label string
	Mark         mark
}

// Class is the CSS class of a tile.
func (t tile) Class() string { return cell{Mark: t.Mark}.Class() }

// tiles returns the few figures that say most about the run.
func (r Result) tiles() []tile {
	var tiles []tile
	if m, ok := r.metric("pool_bytes_ratio", UnitRatio); ok {
		tiles = append(tiles, tile{Value: m + " ×", Label: "pool class, Weir ÷ reference"})
	}
	if m, ok := r.metric("total_bytes_ratio", UnitRatio); ok {
		tiles = append(tiles, tile{Value: m + " ×", Label: "all bytes, Weir ÷ reference"})
	}
	if m, ok := r.metric("stock_bytes_ratio", UnitRatio); ok {
		tiles = append(tiles, tile{Value: m + " ×", Label: "all bytes, stock ÷ reference"})
	}
	if m, ok := r.metric("cache_ready_seconds", UnitSeconds); ok {
		tiles = append(tiles, tile{Value: m, Label: "until the pool cache was ready"})
	}
	if m, ok := r.metric("failover_seconds_p99", UnitSeconds); ok {
		tiles = append(tiles, tile{Value: m, Label: "leader change, 99th percentile"})
	}
	for _, zero := range []struct{ metric, label string }{
		{"client_relists", "re-lists by clients"},
		{violations, "watch violations"},
	} {
		if m, ok := r.metric(zero.metric, UnitCount); ok {
			t := tile{Value: m, Label: zero.label}
			if zero.metric == violations {
				t.Mark = r.violationCell(int64(r.Metrics[zero.metric])).Mark
			}
			tiles = append(tiles, t)
		}
	}
	return tiles
}

const violations = "watch_violations"

// violationCell is how many breaks of promises clients saw. They are bad unless the scenario means to mislead clients:
// an expectation says so then.
func (r Result) violationCell(n int64) cell {
	c := text(count(n))
	if n > 0 && !r.expects("misled_clients") {
		c.Mark = bad
	}
	return c
}

// expects reports whether an expectation names a metric.
func (r Result) expects(metric string) bool {
	return slices.ContainsFunc(r.Expectations, func(e Expectation) bool { return e.Name == metric })
}

func (r Result) metric(name string, unit Unit) (string, bool) {
	v, ok := r.Metrics[name]
	if !ok || !isFinite(v) {
		return "", false
	}
	return unit.Format(v), true
}
