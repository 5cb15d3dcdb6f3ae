package hub

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/role"
)

// metrics are what the hub counts itself; what others hold is read when it is asked for (see state).
type metrics struct {
	registry       *prometheus.Registry
	requests       *prometheus.CounterVec
	refusals       *prometheus.CounterVec
	reviews        *prometheus.CounterVec
	stalled        prometheus.Counter
	contradictions *prometheus.CounterVec
	forged         *prometheus.CounterVec
	bodies         *prometheus.CounterVec
	served         *answer.Served

	questions *prometheus.CounterVec
	untouched *prometheus.CounterVec

	heartbeats *prometheus.CounterVec
	mirrored   *prometheus.CounterVec
	forwards   *prometheus.CounterVec
	reports    *prometheus.CounterVec
}

func newMetrics(node, pool string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "weir", Subsystem: "hub", Name: name, Help: help},
			labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		served:   &answer.Served{},
		requests: counter("requests_total",
			"Requests answered, by route (relay, cloud, watch, store, queue, heartbeat, kubelet, refused) and status code.",
			"route", "code"),
		refusals: counter("refused_requests_total",
			"Requests refused by a limit, by reason (anonymous, caller-rate, caller-requests, requests, unproven).", "reason"),
		reviews: counter("authorizations_total", "Decisions about reads from relays, by outcome.", "outcome"),
		stalled: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "weir", Subsystem: "hub", Name: "stalled_answers_total",
			Help: "Answers that were ended because their client took nothing for a minute.",
		}),
		contradictions: counter("pool_contradictions_total",
			"Times the cloud contradicted, when asked again, what the pool's cache holds of a resource: the leader lies, or "+
				"has not learned of a restore.", "resource"),
		forged: counter("forged_documents_total",
			"Copies of API discovery that the pool had and that were not used, since they are not what they say."),
		questions: counter("questions_total",
			"Small reads that asked the cloud what a read with unset resourceVersion has to show, by what they were about "+
				"(version, object) and outcome (answered, failed).", "about", "outcome"),
		untouched: counter("untouched_configmaps_total",
			"Times a ConfigMap that should lead this node's pods to the hub was passed to the kubelet as it is, since it does "+
				"not hold what it should, by name.", "name"),
		bodies: counter("relay_source_bytes_total", "Bytes of lists and watches that fed relays, compressed as they came.",
			"source"),

		heartbeats: counter("heartbeats_total",
			"Heartbeats of this node's kubelet, by outcome: passed to the cloud, pooled since the pool brings them there, "+
				"refused by the cloud, kept because it cannot be reached.", "outcome"),
		mirrored: counter("heartbeats_mirrored_total",
			"Heartbeats mirrored in the coordinator, by outcome: written, failed (and tried again), late (given up).",
			"outcome"),
		forwards: counter("heartbeat_forwards_total",
			"Steps of forwarding heartbeats of other nodes, by step (read-cloud, read-pool, write) and outcome; write ok is a "+
				"heartbeat forwarded.", "step", "outcome"),
		reports: counter("heartbeat_reports_total",
			"Reports of this hub, as leader, of the nodes that the pool has heard, by outcome: receipted (weir-manager has "+
				"answered the one before), silent, refused by the cloud, failed.", "outcome"),
	}
	m.registry.MustRegister(m.contradictions, m.requests, m.refusals, m.stalled, m.forged, m.reviews, m.bodies, m.served,
		m.questions, m.untouched, m.heartbeats, m.mirrored, m.forwards, m.reports,
		process.Collector("weir-hub"), process.Member(node, pool), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) answered(r *answer.Recorder) {
	code := "none"
	if r.Code != 0 {
		code = strconv.Itoa(r.Code)
	}
	m.requests.WithLabelValues(r.Route, code).Inc()
}

// body counts what feeds relays from a source.
func (m *metrics) body(from role.Source) func(int) {
	c := m.bodies.WithLabelValues(from.String())
	return func(n int) { c.Add(float64(n)) }
}

// counted counts by one label.
func counted(m *prometheus.CounterVec) func(label string) {
	return func(label string) { m.WithLabelValues(label).Inc() }
}
