package revocation

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what was taken back.
type Metrics struct {
	revoked *prometheus.CounterVec
	dropped prometheus.Counter
}

// NewMetrics returns metrics that are registered nowhere.
func NewMetrics() *Metrics {
	return &Metrics{
		revoked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_revoked_nodes_total", Help: "Nodes whose certificates were taken back, by cause: deleted, left (the pool), recalled (by the pool, after the cluster was restored from a backup).",
		}, []string{"cause"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_manager_denylist_dropped_total", Help: "Deleted nodes that a full list has forgotten too early: replace the authority of the pool.",
		}),
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.revoked, m.dropped}
}
