package manager

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/manager/verdict"
)

// TestMetrics: what is decided can be read, and what was told to a board at one time is decided at the next.
func TestMetrics(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := newBoard(clock, verdict.Config{Grace: 50 * time.Second})
	b.tell(func(now time.Time, m *verdict.Machine) {
		m.Lead(now, verdict.Record{})
		for _, name := range []string{"a", "b", "c"} {
			m.SetNode(now, name, verdict.Facts{Pool: "p"})
		}
		m.SetNode(now, "d", verdict.Facts{Pool: "q"})
		m.Heartbeat(now, "a", false, true)
		m.Heartbeat(now, "b", true, true)
	})
	var told []string
	b.subscribe(func(node string) { told = append(told, node) })
	b.decide()
	if len(told) != 4 {
		t.Errorf("told of %v", told)
	}
	told = nil
	b.decide()
	if len(told) != 0 {
		t.Errorf("told again of %v", told)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newMetrics(b))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	for series, want := range map[string]float64{
		"weir_manager_nodes/normal": 1, "weir_manager_nodes/delegated": 1, "weir_manager_nodes/unknown": 2,
		"weir_manager_nodes/missing":     0,
		"weir_manager_nodes_marked/kept": 1, "weir_manager_pools/heard": 1, "weir_manager_pools/silent": 1,
		"weir_manager_deaf/": 0, "weir_manager_pool_silent/p": 0, "weir_manager_pool_silent/q": 1,
		"weir_manager_node_cut_off/p": 1, "weir_manager_node_cut_off/q": -1,
	} {
		if got := value(families, series); got != want {
			t.Errorf("%s: %v, want %v", series, got, want)
		}
	}
}

// value is a gauge, named with the value of its label.
func value(families []*dto.MetricFamily, series string) float64 {
	for _, f := range families {
		for _, m := range f.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label = l.GetValue()
			}
			if f.GetName()+"/"+label == series {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}
