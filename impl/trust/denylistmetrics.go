package trust

import "github.com/prometheus/client_golang/prometheus"

var (
	denylistNumberDesc = prometheus.NewDesc("weir_denylist_number",
		"Number of the newest list of refused certificates that is held: the time of its writing in milliseconds; 0: none.",
		nil, nil)
	entriesDesc = prometheus.NewDesc("weir_denylist_entries", "Nodes of which certificates are refused.", nil, nil)
	deniedDesc  = prometheus.NewDesc("weir_denied_total",
		"Certificates that were refused because their node was deleted or left the pool, and streams that ended for it.", nil,
		nil)
)

// Describe implements prometheus.Collector.
func (h *HeldDenylist) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(h, ch) }

// Collect implements prometheus.Collector.
func (h *HeldDenylist) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(denylistNumberDesc, prometheus.GaugeValue, float64(h.Number()))
	ch <- prometheus.MustNewConstMetric(entriesDesc, prometheus.GaugeValue, float64(len(h.Entries())))
	ch <- prometheus.MustNewConstMetric(deniedDesc, prometheus.CounterValue, float64(h.refused.Load()))
}
