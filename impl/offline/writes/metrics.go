package writes

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct{ decided *prometheus.CounterVec }

func newMetrics() *metrics {
	return &metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Subsystem: "offline", Name: "writes_total",
		Help: "Writes of local clients that the hub answered in the cloud's place, by verb, resource and outcome " +
			"(taken, unchanged, refused).",
	}, []string{"verb", "resource", "outcome"})}
}

// answered counts a write.
func (m *metrics) answered(r *write, outcome string) {
	m.decided.WithLabelValues(r.verb, r.label(), outcome).Inc()
}

func (m *metrics) collect(ch chan<- prometheus.Metric, now Phase) {
	m.decided.Collect(ch)
	phase := prometheus.NewDesc("weir_offline_phase",
		"1 for how far the return to the cloud has come: apart, waiting for this node's turn, pushing what waited, open.",
		[]string{"phase"}, nil)
	for p := Apart; p <= Open; p++ {
		v := 0.0
		if p == now {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(phase, prometheus.GaugeValue, v, p.String())
	}
}
