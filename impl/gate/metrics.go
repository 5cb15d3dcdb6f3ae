package gate

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
)

// metrics are the gate's own.
type metrics struct {
	registry *prometheus.Registry
	behind   *prometheus.CounterVec
}

var (
	readersDesc = prometheus.NewDesc("weir_gate_readers", "Reads of a resource that are under way, most of them watches.",
		[]string{"resource"}, nil)
	listsDesc = prometheus.NewDesc("weir_gate_lists_total", "Times a resource was listed whole at kube-apiserver.",
		[]string{"resource"}, nil)
)

// state is what is counted elsewhere, each by resource. It implements prometheus.Collector.
type state struct {
	readers func() map[string]int
	lists   func() map[string]int
}

// Describe implements prometheus.Collector.
func (state) Describe(ch chan<- *prometheus.Desc) {
	ch <- readersDesc
	ch <- listsDesc
}

// Collect implements prometheus.Collector.
func (s state) Collect(ch chan<- prometheus.Metric) {
	for name, n := range s.readers() {
		ch <- prometheus.MustNewConstMetric(readersDesc, prometheus.GaugeValue, float64(n), name)
	}
	for name, n := range s.lists() {
		ch <- prometheus.MustNewConstMetric(listsDesc, prometheus.CounterValue, float64(n), name)
	}
}

func newMetrics(relays func() []*relay.Relay, counted state) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.behind = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_gate_behind_total",
		Help: "Times readers of a resource were sent to kube-apiserver, since it had shown the gate no sign of life.",
	}, []string{"resource"})
	m.registry.MustRegister(process.Collector("weir-gate"), relay.NewCollector(relays), counted, m.behind)
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
