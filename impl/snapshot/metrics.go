package snapshot

import "github.com/prometheus/client_golang/prometheus"

var _ prometheus.Collector = (*Snapshots)(nil)

// Describe implements prometheus.Collector.
func (s *Snapshots) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s *Snapshots) Collect(ch chan<- prometheus.Metric) {
	for name, st := range s.Status() {
		tell := func(kind prometheus.ValueType, metric, help string, v float64) {
			desc := prometheus.NewDesc("weir_snapshot_"+metric, help, []string{"resource"}, nil)
			ch <- prometheus.MustNewConstMetric(desc, kind, v, name)
		}
		at := 0.0
		if !st.Success.IsZero() {
			at = float64(st.Success.UnixMilli()) / 1e3
		}
		tell(prometheus.CounterValue, "bytes_written_total", "Bytes of snapshots written.", float64(st.Written))
		tell(prometheus.CounterValue, "rewrites_total", "Snapshots written as a whole.", float64(st.Rewritten))
		tell(prometheus.CounterValue, "errors_total", "Snapshots that could not be written or read.", float64(st.Errors))
		tell(prometheus.GaugeValue, "size_bytes", "Size of the snapshot on disk.", float64(st.Size))
		tell(prometheus.GaugeValue, "resource_version", "resourceVersion that a restart would restore.", float64(st.Version))
		tell(prometheus.GaugeValue, "last_success_timestamp_seconds",
			"When a snapshot was last written, Unix time; 0 for never.", at)
	}
}
