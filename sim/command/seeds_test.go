package command

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/report"
)

// TestSeedSheet: one seed that failed, or ended before anything could be judged, fails all.
func TestSeedSheet(t *testing.T) {
	run := func(seed int64, passed bool, got ...string) report.Result {
		r := report.Result{Outcome: report.Outcome{Scenario: "storm", Seed: seed, Passed: passed}}
		for i, g := range got {
			r.Expectations = append(r.Expectations, report.Expectation{
				Name: []string{"client_relists", "watch_violations"}[i], Got: g, Want: "= 0",
			})
		}
		return r
	}
	for _, test := range []struct {
		results []report.Result
		passed  bool
		lead    string
	}{
		{[]report.Result{run(1, true, "0", "0"), run(2, true, "0", "0")}, true, "2 of 2 seeds"},
		{[]report.Result{run(1, true, "0", "0"), run(2, false, "3", "0")}, false, "1 of 2 seeds"},
		{[]report.Result{run(1, false), run(2, true, "0", "0")}, false, "1 of 2 seeds"},
	} {
		s := seedSheet(test.results, "repeat", "note")
		if s.Passed != test.passed || !strings.HasPrefix(s.Lead, test.lead) {
			t.Errorf("passed %v, %q", s.Passed, s.Lead)
		}
		for i, row := range s.Grids[0].Rows {
			if len(row.Fields) != len(s.Grids[0].Columns) || row.Good != test.results[i].Passed {
				t.Errorf("%v under %v", row, s.Grids[0].Columns)
			}
		}
	}
}
