package images

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-edge/weir/impl/digest"
)

// Where bytes of images came from.
const (
	byOwn      = "own"
	byPool     = "pool"
	byGrowing  = "growing"
	byServed   = "served"
	byRegistry = "registry"
)

// Metrics are what a mirror counts.
type Metrics struct {
	Bytes    *prometheus.CounterVec
	requests *prometheus.CounterVec
	tags     *prometheus.CounterVec
	wrong    prometheus.Counter
	barred   prometheus.Gauge
}

// NewMetrics makes them.
func NewMetrics() *Metrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "weir", Subsystem: "hub", Name: name, Help: help,
		}, []string{label})
	}
	return &Metrics{
		Bytes: counter("images_bytes_total",
			"Bytes of images, by where they came from: own (this node's store), pool, growing (a member that was pulling), "+
				"registry (those that containerd pulled over the uplink, after this mirror had sent it there), served (to "+
				"members).", "from"),
		requests: counter("images_requests_total",
			"Requests of this node's containerd for content, by outcome: own, pool, growing, pull (this node is to ask the "+
				"registry), alone (nobody in the pool could be asked), failed (an answer broke off), refused.", "outcome"),
		tags: counter("images_tags_total",
			"Requests of this node's containerd for tags, by answer: pool (within a minute of the registry), kept "+
				"(while the cloud is away), lone (the same, by the word of one member), cloud (the registry is to).", "by"),
		wrong: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "weir", Subsystem: "hub", Name: "images_wrong_total",
			Help: "Times a member of the pool served other bytes than those of the digest that it was asked for.",
		}),
		barred: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "weir", Subsystem: "hub", Name: "images_barred",
			Help: "Members of the pool that are not listened to about tags, since registries said something else to two others.",
		}),
	}
}

// Collectors are all of them.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.Bytes, m.requests, m.tags, m.wrong, m.barred}
}

// count counts a request by its outcome.
func (m *Metrics) count(outcome string) { m.requests.WithLabelValues(outcome).Inc() }

// Sum is what there is to tell the cloud.
func (m *Metrics) Sum() digest.Images {
	of := func(from string) int64 {
		var now dto.Metric
		if m.Bytes.WithLabelValues(from).Write(&now) != nil {
			return 0
		}
		return int64(now.GetCounter().GetValue())
	}
	return digest.Images{Pulled: of(byRegistry), Saved: of(byPool) + of(byGrowing), Served: of(byServed)}
}
