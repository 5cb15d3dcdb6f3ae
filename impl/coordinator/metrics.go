package coordinator

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	apimetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
)

// metrics are the coordinator's own.
type metrics struct {
	registry *prometheus.Registry
	freed    *prometheus.CounterVec
	lied     prometheus.Counter
	later    prometheus.Counter
	reclaims *prometheus.CounterVec
	refilled *prometheus.CounterVec
}

func newMetrics(pool string, relays func() []*relay.Relay, kept prometheus.Collector,
	unready func(*relay.Relay) error) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		freed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_leases_freed_total",
			Help: "Times the election Lease was taken from a leader whose hub could not be read: broken or unreachable.",
		}, []string{"pulse"}),
		lied: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_coordinator_leaders_lied_total",
			Help: "Times hubs of the pool found that the cloud contradicts what the leader fed, and it lost the election Lease.",
		}),
		later: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_coordinator_refused_writes_total",
			Help: "Writes that were refused with 429, since their caller sent more than one may.",
		}),
		reclaims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_etcd_reclaims_total",
			Help: "Times etcd had half of its quota in use, or was full and took no writes, and its history was thrown away " +
				"to make room.",
		}, []string{"full"}),
		refilled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_coordinator_refills_total",
			Help: "Times a relay that nobody fed was moved forward to what the hub of a node holds. That is not fresh, and " +
				"the word of one hub.",
		}, []string{"resource", "node"}),
	}
	m.registry.MustRegister(process.Collector("weir-coordinator"), process.Member("", pool), m.freed, m.lied,
		m.later, m.reclaims, m.refilled, relay.NewCollector(relays), kept, ready{relays, unready})
	return m
}

// handler serves the coordinator's own metrics, those of the generic server, the process and Go, and those of etcd.
func (m *metrics) handler() http.Handler {
	apimetrics.Register()
	return promhttp.HandlerFor(prometheus.Gatherers{
		m.registry, legacyregistry.DefaultGatherer, prometheus.GathererFunc(etcd),
	}, promhttp.HandlerOpts{})
}

// etcd gathers what the embedded etcd registers with Prometheus' default registry, which also has what legacyregistry
// has.
func etcd() ([]*dto.MetricFamily, error) {
	all, err := prometheus.DefaultGatherer.Gather()
	var own []*dto.MetricFamily
	for _, f := range all {
		if strings.HasPrefix(f.GetName(), "etcd_") {
			own = append(own, f)
		}
	}
	return own, err
}

// ready exports which relays are ready.
type ready struct {
	relays  func() []*relay.Relay
	unready func(*relay.Relay) error
}

var isReady = prometheus.NewDesc("weir_coordinator_ready", "1 while the resource is synced and fresh.",
	[]string{"resource"}, nil)

// Describe implements prometheus.Collector.
func (x ready) Describe(ch chan<- *prometheus.Desc) { ch <- isReady }

// Collect implements prometheus.Collector.
func (x ready) Collect(ch chan<- prometheus.Metric) {
	for _, r := range x.relays() {
		is := 1.0
		if x.unready(r) != nil {
			is = 0
		}
		ch <- prometheus.MustNewConstMetric(isReady, prometheus.GaugeValue, is, r.Resource().String())
	}
}
