package jobs

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
)

// Metrics tell of Jobs on nodes.
type Metrics struct {
	now    *prometheus.GaugeVec
	failed *prometheus.GaugeVec
	begun  *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered nowhere.
func NewMetrics() *Metrics {
	m := &Metrics{
		now: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_manager_installs",
			Help: "Nodes whose Job to join a pool or to leave it is running, made no progress and is tried again (stalled), " +
				"or failed and waits for a person.",
		}, []string{"state"}),
		failed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_manager_node_install_failed",
			Help: "1 for a node whose Job to join the pool failed and waits for a person; the pool is empty if it was to leave.",
		}, []string{"pool", "node"}),
		begun: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_installs_begun_total", Help: "Jobs on nodes that were begun, by what for: join, leave.",
		}, []string{"verb"}),
	}
	m.show(&stand{})
	return m
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.now, m.failed, m.begun}
}

func (m *Metrics) show(s *stand) {
	count := map[nodejob.Phase]int{}
	m.failed.Reset()
	for i := range s.jobs {
		is, _ := nodejob.PhaseOf(&s.jobs[i])
		if count[is]++; is == nodejob.Failed {
			of := s.jobs[i].Annotations
			m.failed.WithLabelValues(of[contract.InstallPool], of[contract.InstallNode]).Set(1)
		}
	}
	m.now.WithLabelValues("running").Set(float64(count[nodejob.Running]))
	m.now.WithLabelValues("stalled").Set(float64(count[nodejob.Aside]))
	m.now.WithLabelValues("failed").Set(float64(count[nodejob.Failed]))
}
