package process

import (
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestCollector: one series of each metric, whose labels say what runs, and where.
func TestCollector(t *testing.T) {
	for name, c := range map[string]struct {
		of     prometheus.Collector
		labels map[string]string
	}{
		"weir_build_info": {
			Collector("weir-hub"), map[string]string{"component": "weir-hub", "go": runtime.Version(), "version": Version()},
		},
		"weir_member_info": {Member("edge-1", "harbour"), map[string]string{"node": "edge-1", "pool": "harbour"}},
	} {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(c.of)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != name {
			t.Fatalf("%v, %v", families, err)
		}
		labels := map[string]string{}
		for _, l := range families[0].GetMetric()[0].GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if !maps.Equal(labels, c.labels) {
			t.Errorf("%s: %v, want %v", name, labels, c.labels)
		}
		if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
	if v := Version(); v == "" || strings.Contains(v, runtime.GOARCH) {
		t.Errorf("version %q", v)
	}
}
