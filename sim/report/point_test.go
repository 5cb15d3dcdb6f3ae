package report_test

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/report"
)

// TestLead: a summary begins with what its scenario is about, in words, if it was measured and is expected; else with
// what crossed the uplink; and that of a run that failed with why.
func TestLead(t *testing.T) {
	for name, c := range map[string]struct {
		expects []string
		metrics report.Values
		bytes   report.ByteTable
		failed  bool
		want    string
	}{
		"two ways": {
			expects: []string{"late_heartbeats", "wrong_evictions"},
			metrics: report.Values{"stock_evictions": 2, "wrong_evictions": 0, "missed_evictions": 0},
			want: "**Stock Kubernetes evicted 2 of the pods. Weir evicted 0 by mistake, and missed 0.** All 2 expectations " +
				"held.\n",
		},
		"a quiet node, of which no pod is evicted": {
			expects: []string{"quiet_bytes_ratio", "stock_evictions", "wrong_evictions"},
			metrics: report.Values{
				"quiet_bytes_per_node_second": 52, "stock_quiet_bytes_per_node_second": 217, "quiet_bytes_ratio": 0.24,
				"stock_evictions": 0, "wrong_evictions": 0, "missed_evictions": 0,
			},
			want: "**A quiet node exchanged 52 bytes a second with the cloud, with stock Kubernetes 217: 0.240 times as " +
				"many.** All 3 expectations held.\n",
		},
		"a lie": {
			expects: []string{"lie_found_seconds"},
			metrics: report.Values{
				"lie_found_seconds": 42.8, "lie_deposed_seconds": 49, "misled_clients": 12, "misled_clients_left": 0,
			},
			want: "**What a leader forged was found within 42.8 s, and another one led within 49 s. Clients that were misled: " +
				"12, in the end 0.** The one expectation held.\n",
		},
		"one way": {
			expects: []string{"moved_seconds_p99"},
			metrics: report.Values{"moved_seconds_p99": 4.65, "moved_pods": 30, "taken_writes": 3, "lost_writes": 0},
			want:    "**Services led to 30 moved pods within 4.65 s (99th percentile).** The one expectation held.\n",
		},
		"nothing expected of it": {
			expects: []string{"late_markers"}, metrics: report.Values{"taken_writes": 3, "lost_writes": 0},
			want: "**The one expectation held.**\n",
		},
		"failed": {
			expects: []string{"lost_writes"}, metrics: report.Values{"taken_writes": 3, "lost_writes": 1}, failed: true,
			want: "did not hold: lost\\_writes.** Of 3 writes without the cloud 1 were lost.\n",
		},
		"bytes": {
			expects: []string{"pool_bytes_ratio"}, metrics: report.Values{"pool_bytes_ratio": 1},
			bytes: report.ByteTable{{Way: report.WayWeir, Bytes: 1000}, {Way: report.WayStock, Bytes: 4000}},
			want: "**The uplink carried 1 kB with Weir and 4 kB without it, 4.0 times as much.** The one expectation " +
				"held.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := report.Result{Bytes: c.bytes}
			r.Passed, r.Metrics = !c.failed, c.metrics
			for _, e := range c.expects {
				r.Expectations = append(r.Expectations, report.Expectation{Name: e, Passed: r.Passed})
			}
			if got := report.Summary(r); !strings.Contains(got, c.want) {
				t.Errorf("%.300s\nwant %s", got, c.want)
			}
		})
	}
}

// TestIntended: breaks of promises are bad, whether they are expected or not, but in a scenario whose leader lies.
func TestIntended(t *testing.T) {
	for expected, want := range map[string]string{
		"watch_violations": "\u2718 12", "late_markers": "\u2718 12", "misled_clients": " 12",
	} {
		r := report.Result{Clients: []report.Client{{Way: report.WayWeir, Violations: 12}}}
		r.Bytes = report.ByteTable{{Way: report.WayWeir, Bytes: 1000}}
		r.Expectations = []report.Expectation{{Name: expected}}
		r.Metrics = report.Values{"watch_violations": 12}
		if got := report.Summary(r); !strings.Contains(got, want) || strings.Contains(got, "\u2718 12") != (want != " 12") {
			t.Errorf("with %s expected: %s", expected, got)
		}
	}
}
