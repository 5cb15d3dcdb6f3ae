package process

import (
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestCollector: one series, whose labels tell what runs.
func TestCollector(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Collector("weir-hub"))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "weir_build_info" {
		t.Fatalf("%v, %v", families, err)
	}
	labels := map[string]string{}
	for _, l := range families[0].GetMetric()[0].GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	if labels["component"] != "weir-hub" || labels["go"] != runtime.Version() || labels["version"] == "" ||
		strings.Contains(labels["version"], runtime.GOARCH) {
		t.Errorf("%v", labels)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
