package trust

import "github.com/prometheus/client_golang/prometheus"

var (
	numberDesc = prometheus.NewDesc("weir_trust_number",
		"Number of the last bundle of authorities that is held: the time of its writing in milliseconds; 0: none, a "+
			"file counts.", nil, nil)
	expiryDesc = prometheus.NewDesc("weir_authority_expiry_timestamp_seconds",
		"End of each authority of the pool that counts.", []string{"authority"}, nil)
)

// Describe implements prometheus.Collector.
func (h *Held) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(h, ch) }

// Collect implements prometheus.Collector.
func (h *Held) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(numberDesc, prometheus.GaugeValue, float64(h.Number()))
	told := map[string]bool{}
	for _, c := range h.List() {
		if name := Name(c); !told[name] {
			told[name] = true
			ch <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, float64(c.NotAfter.Unix()), name)
		}
	}
}
