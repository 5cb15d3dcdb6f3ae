package certificates

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what became of requests.
type Metrics struct {
	requests *prometheus.CounterVec
	refused  *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered nowhere.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_certificate_requests_total", Help: "Requests for certificates, by what became of them: approved, signed, denied, failed.",
		}, []string{"result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_certificate_refusals_total", Help: "Requests that were denied or failed, by what in them did not agree.",
		}, []string{"field"}),
	}
}

// Collectors are the metrics, for a registry.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.refused}
}
