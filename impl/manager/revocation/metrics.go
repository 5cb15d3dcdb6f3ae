package revocation

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what was revoked.
type Metrics struct {
	revoked *prometheus.CounterVec
	dropped prometheus.Counter
	leftOut *prometheus.CounterVec

	unconfirmed *prometheus.GaugeVec
}

// NewMetrics returns metrics that are registered nowhere.
func NewMetrics() *Metrics {
	return &Metrics{
		revoked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_revoked_nodes_total",
			Help: "Nodes whose certificates were revoked, by cause: deleted, left (the pool), recalled (by the pool, after " +
				"the cluster was restored from a backup).",
		}, []string{"cause"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_manager_denylist_dropped_total",
			Help: "Deleted nodes that a full list has forgotten too early: replace the authority of the pool.",
		}),
		leftOut: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_left_out_total",
			Help: "What counted for nothing, so that all others went on, each time it was looked at: node (no room on the " +
				"roster of its pool), line (of a roster), returned (by a hub).",
		}, []string{"what"}),
		unconfirmed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_manager_unconfirmed_deletions",
			Help: "Nodes of a pool that were deleted, and nobody has confirmed it: kubectl weir node restore, or revoke.",
		}, []string{"pool"}),
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.revoked, m.dropped, m.leftOut, m.unconfirmed}
}
