package pools

import "github.com/prometheus/client_golang/prometheus"

// Metrics tell how NodePools are kept (seed 003 asks for the state of leader-hub-<pool>, and for the success of
// elections).
type Metrics struct {
	synced    *prometheus.GaugeVec
	elections *prometheus.CounterVec
	aside     prometheus.Gauge
}

// NewMetrics returns metrics that are registered nowhere.
func NewMetrics() *Metrics {
	return &Metrics{
		synced: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_manager_leader_hub_synced",
			Help: "1 if the objects leader-hub-<pool> say what the NodePool says, else 0.",
		}, []string{"pool"}),
		elections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_leader_hub_elections_total",
			Help: "Changes of the leader hubs of pools, by result: elected (all that were asked for), short, none.",
		}, []string{"result"}),
		aside: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_manager_pools_left_to_openyurt",
			Help: "1 while yurt-manager runs, and keeps NodePools in the place of weir-manager.",
		}),
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.synced, m.elections, m.aside}
}
