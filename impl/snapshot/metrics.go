package snapshot

import "github.com/prometheus/client_golang/prometheus"

var _ prometheus.Collector = (*Snapshots)(nil)

// Describe implements prometheus.Collector.
func (s *Snapshots) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s *Snapshots) Collect(ch chan<- prometheus.Metric) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("weir_snapshot_"+name, help, []string{"resource"}, nil)
	}
	written := desc("bytes_written_total", "Bytes of snapshots written.")
	rewritten := desc("rewrites_total", "Snapshots written as a whole.")
	faults := desc("errors_total", "Snapshots that could not be written or read.")
	size := desc("size_bytes", "Size of the snapshot on disk.")
	version := desc("resource_version", "resourceVersion that a restart would restore.")
	success := desc("last_success_timestamp_seconds", "When a snapshot was last written, Unix time; 0 for never.")
	for name, st := range s.Status() {
		counter := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, name)
		}
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
		counter(written, float64(st.Written))
		counter(rewritten, float64(st.Rewritten))
		counter(faults, float64(st.Errors))
		gauge(size, float64(st.Size))
		gauge(version, float64(st.Version))
		at := 0.0
		if !st.Success.IsZero() {
			at = float64(st.Success.UnixMilli()) / 1e3
		}
		gauge(success, at)
	}
}
