package scenario_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/scenario"
)

func TestExpectation(t *testing.T) {
	tests := []struct {
		text   string
		value  float64
		passed bool
		got    string
		want   string
	}{
		{"pool_bytes_ratio <= 1.02", 1.02, true, "1.020", "≤ 1.020"},
		{"pool_bytes_ratio <= 1.02", 1.0201, false, "1.0201", "≤ 1.020"},
		{"pool_bytes_ratio<1.02", 1.02, false, "1.020", "< 1.020"},
		{"stock_bytes_ratio >= 4", 21.5, true, "21.5", "≥ 4.000"},
		{"stock_bytes_ratio > 4", 4, false, "4.000", "> 4.000"},
		{"watch_violations == 0", 0, true, "0", "= 0"},
		{"watch_violations == 0", 1, false, "1", "= 0"},
		{"failovers != 0", 3, true, "3", "≠ 0"},
		{"coordinator_rss_anon_bytes <= 64MB", 64e6, true, "64 MB", "≤ 64 MB"},
		{"coordinator_rss_anon_bytes <= 64e6", 64000001, false, "64000001", "≤ 64 MB"},
		{"coordinator_rss_anon_bytes <= 0.5 kB", 400, true, "400 B", "≤ 500 B"},
		{"cache_ready_seconds <= 2min", 119, true, "119 s", "≤ 120 s"},
		{"cache_ready_seconds <= 500ms", 1, false, "1 s", "≤ 0.5 s"},
		{"resync_bytes_share <= 5%", 0.05, true, "5 %", "≤ 5 %"},
		{"cache_ready_seconds >= 0", math.Inf(1), false, "not measured", "≥ 0 s"},
		{"cache_ready_seconds != 0", math.NaN(), false, "not measured", "≠ 0 s"},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			e, err := scenario.ParseExpectation(test.text)
			if err != nil {
				t.Fatal(err)
			}
			want := report.Expectation{Name: e.Metric, Passed: test.passed, Got: test.got, Want: test.want}
			if diff := cmp.Diff(want, e.Report(map[string]float64{e.Metric: test.value})); diff != "" {
				t.Errorf("with %v (-want +got):\n%s", test.value, diff)
			}
			if got, passed := e.Check(map[string]float64{"another": 0}); passed || got != "not measured" {
				t.Errorf("a metric that is missing: passed %v with %q", passed, got)
			}
			if e.OfTime() != strings.Contains(e.Metric, "_seconds") {
				t.Errorf("is of time: %t", e.OfTime())
			}
			again, err := scenario.ParseExpectation(e.String())
			if err != nil || again != e {
				t.Errorf("%q is read as %+v, %v; want %+v", e, again, err, e)
			}
		})
	}
}

// TestExpectationOfEachMetric keeps expectations possible for every metric that a report documents.
func TestExpectationOfEachMetric(t *testing.T) {
	for _, m := range report.Metrics() {
		e, err := scenario.ParseExpectation(m.Name + " <= 1")
		if err != nil || e.Metric != m.Name {
			t.Errorf("%s: %+v, %v", m.Name, e, err)
		}
	}
}
