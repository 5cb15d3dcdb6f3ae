package credential

import "github.com/prometheus/client_golang/prometheus"

// Reasons of failures.
const (
	unreachable = "unreachable" // no answer of kube-apiserver
	refused     = "refused"     // it answered, and did not take the request
	denied      = "denied"      // weir-manager, or somebody else, said no
	mismatch    = "mismatch"    // what was signed is not what was asked for
	onDisk      = "disk"        // it cannot be kept
)

// KeeperMetrics count what Keepers do.
type KeeperMetrics struct {
	renewals *prometheus.CounterVec
	failures *prometheus.CounterVec
}

// NewKeeperMetrics returns metrics that are registered nowhere.
func NewKeeperMetrics() *KeeperMetrics {
	return &KeeperMetrics{
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_certificate_renewals_total",
			Help: "Certificates that this process asked for and got, the first one too, by kind.",
		}, []string{"kind"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_certificate_failures_total",
			Help: "Attempts to get a certificate that failed, by kind and reason: unreachable, refused, denied, mismatch, disk.",
		}, []string{"kind", "reason"}),
	}
}

// Collectors are the metrics, for a registry.
func (m *KeeperMetrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.renewals, m.failures}
}
