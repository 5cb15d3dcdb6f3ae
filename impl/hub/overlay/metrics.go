package overlay

import "github.com/prometheus/client_golang/prometheus"

// metrics are what an overlay counts.
type metrics struct {
	statements *prometheus.CounterVec
	pods       prometheus.GaugeFunc
	objects    prometheus.GaugeFunc
}

// newMetrics makes them of what tells how many pods are corrected, and how many objects.
func newMetrics(pods, objects func() float64) *metrics {
	return &metrics{
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "weir", Subsystem: "hub", Name: "moved_statements_total",
			Help: "What other nodes of the pool said of their pods while the cloud was away, by outcome (taken, old, lacks, " +
				"refused, stranger).",
		}, []string{"outcome"}),
		pods: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "weir", Subsystem: "hub", Name: "moved_pods",
			Help: "Pods of the pool of which EndpointSlices and Endpoints are shown with what their kubelets say, since the " +
				"cloud does not know it.",
		}, pods),
		objects: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "weir", Subsystem: "hub", Name: "moved_objects",
			Help: "EndpointSlices, Endpoints and Pods of relays that clients of this node are shown otherwise than the cloud " +
				"has them.",
		}, objects),
	}
}
