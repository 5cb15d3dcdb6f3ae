package writes

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct{ decided *prometheus.CounterVec }

func newMetrics() *metrics {
	return &metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Subsystem: "offline", Name: "writes_total",
		Help: "Writes of local clients that the hub answered in the cloud's place, by verb, resource and outcome (taken, refused).",
	}, []string{"verb", "resource", "outcome"})}
}

// answered counts a write.
func (m *metrics) answered(r *write, outcome string) {
	m.decided.WithLabelValues(r.verb, r.label(), outcome).Inc()
}

// label is the resource of a write. Those that nobody knows share a name, so that clients cannot make up series.
func (r *write) label() string {
	switch {
	case !r.answerable() && !r.is(pods(), "") && (r.Resource.Name != "leases" || r.sub != ""):
		return "other"
	case r.sub != "":
		return r.Resource.Name + "/" + r.sub
	}
	return r.Resource.Name
}

var _ prometheus.Collector = (*Writes)(nil)

// Describe implements prometheus.Collector.
func (w *Writes) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, ch) }

// Collect implements prometheus.Collector. What the queue holds and did is among the store's metrics.
func (w *Writes) Collect(ch chan<- prometheus.Metric) {
	w.metrics.decided.Collect(ch)
	phase := prometheus.NewDesc("weir_offline_phase", "1 for how far the return to the cloud has come: apart, waiting for this node's turn, pushing what waited, open.", []string{"phase"}, nil)
	for p := Apart; p <= Open; p++ {
		v := 0.0
		if p == w.Phase() {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(phase, prometheus.GaugeValue, v, p.String())
	}
}
