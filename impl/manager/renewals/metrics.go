package renewals

import "github.com/prometheus/client_golang/prometheus"

// Metrics tell of reports of pools, and of what became of the nodes in them.
type Metrics struct {
	reports *prometheus.CounterVec
	beats   *prometheus.CounterVec
	last    *prometheus.GaugeVec
}

// NewMetrics returns metrics that are registered nowhere.
func NewMetrics() *Metrics {
	return &Metrics{
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_pool_reports_total",
			Help: "Reports of pools on which nodes they hear, by what became of them: taken, invalid, unsigned (no key of " +
				"the pool's authority is here), failed.",
		}, []string{"outcome"}),
		beats: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_pool_heartbeats_total",
			Help: "Nodes in reports that were taken, by what became of them: renewed, cut-off (the leader forwards its " +
				"heartbeats), unknown (no node of the pool, or without a Lease or an anchor), expired, again, wrong (what " +
				"its link is), failed.",
		}, []string{"outcome"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_manager_pool_report_timestamp_seconds", Help: "When the last report of a pool was taken, Unix time.",
		}, []string{"pool"}),
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.reports, m.beats, m.last}
}
