package certificates

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what became of requests.
type Metrics struct {
	requests *prometheus.CounterVec
	refused  *prometheus.CounterVec
	steps    *prometheus.CounterVec
	ends     *prometheus.GaugeVec
}

// NewMetrics returns metrics that are registered nowhere.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_certificate_requests_total",
			Help: "Requests for certificates, by what became of them: approved, signed, denied, failed.",
		}, []string{"result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_certificate_refusals_total",
			Help: "Requests that were denied or failed, by what in them did not agree, and by the Node that they were for, if " +
				"there is one.",
		}, []string{"field", "pool", "node"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_authority_steps_total",
			Help: "Steps of rotations of pools' authorities, by what they led to: prepared, switched, steady, replaced " +
				"(after a loss).",
		}, []string{"step"}),
		ends: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_manager_authority_expiry_timestamp_seconds",
			Help: "End of the authorities of a pool, by role: signer, next, before (the first to end).",
		}, []string{"pool", "role"}),
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.refused, m.steps, m.ends}
}
