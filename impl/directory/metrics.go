package directory

import "github.com/prometheus/client_golang/prometheus"

var (
	versionDesc = prometheus.NewDesc("weir_directory_version",
		"Number under which what the pool is told about itself was signed; 0: nothing was, and flags count.", nil, nil)
	liveDesc = prometheus.NewDesc("weir_directory_live",
		"1 while what the pool is told about itself is what the cloud says now.", nil, nil)
	ageDesc = prometheus.NewDesc("weir_directory_age_seconds",
		"Time since this process knew what the cloud says of it; absent if it never did, as in a coordinator.", nil, nil)
	modeDesc = prometheus.NewDesc("weir_directory_mode",
		"1 for how the pool shares: coordinator, leader-hubs, or none.", []string{"mode"}, nil)
	changesDesc = prometheus.NewDesc("weir_directory_changes_total",
		"Times that the pool was told something else about itself.", nil, nil)
	errorsDesc = prometheus.NewDesc("weir_directory_errors_total",
		"Times that what the cloud, or somebody of the pool, told of the pool did not count: it was not signed, or "+
			"is invalid.", nil, nil)
)

// Describe implements prometheus.Collector.
func (d *Directory) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(d, ch) }

// Collect implements prometheus.Collector.
func (d *Directory) Collect(ch chan<- prometheus.Metric) {
	s, live := d.Status(), 0.0
	if s.Live {
		live = 1
	}
	if s.Mode == "" {
		s.Mode = "none"
	}
	ch <- prometheus.MustNewConstMetric(versionDesc, prometheus.GaugeValue, float64(s.Version))
	ch <- prometheus.MustNewConstMetric(liveDesc, prometheus.GaugeValue, live)
	if s.AgeSeconds >= 0 {
		ch <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, s.AgeSeconds)
	}
	ch <- prometheus.MustNewConstMetric(modeDesc, prometheus.GaugeValue, 1, s.Mode)
	ch <- prometheus.MustNewConstMetric(changesDesc, prometheus.CounterValue, float64(s.Changes))
	ch <- prometheus.MustNewConstMetric(errorsDesc, prometheus.CounterValue, float64(s.Errors))
}
