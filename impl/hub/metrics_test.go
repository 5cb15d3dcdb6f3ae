package hub

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMetricsLint: what a hub in a pool tells of itself is named by the conventions of Prometheus.
func TestMetricsLint(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	p.start("edge-1")
	eventually(t, "edge-1 to lead", func() bool { return p.settled("edge-1") == "edge-1" })
	registry := p.hubs["edge-1"].hub.metrics.registry
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(registry, "weir_build_info", "weir_member_info", "weir_hub_cut_off",
		"weir_hub_coordinator_ready"); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
