package hub

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

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

	questions *prometheus.CounterVec

	heartbeats *prometheus.CounterVec
	mirrored   *prometheus.CounterVec
	forwards   *prometheus.CounterVec
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "weir", Subsystem: "hub", Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counter("requests_total", "Requests answered, by route (relay, cloud, store, queue, heartbeat, refused) and status code.", "route", "code"),
		refusals: counter("refused_requests_total", "Requests refused by a limit, by reason (anonymous, caller-rate, caller-requests, requests, unproven).", "reason"),
		reviews:  counter("authorizations_total", "Decisions about reads from relays, by outcome.", "outcome"),
		stalled: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "weir", Subsystem: "hub", Name: "stalled_answers_total", Help: "Answers that were ended because their client took nothing for a minute.",
		}),
		contradictions: counter("pool_contradictions_total", "Times the cloud contradicted, when asked again, what the pool's cache holds of a resource: the leader lies, or has not learned of a restore.", "resource"),
		forged:         counter("forged_documents_total", "Copies of API discovery that the pool had and that were not used, since they are not what they say."),
		questions: counter("questions_total",
			"Small reads that asked the cloud what a read with unset resourceVersion has to show, by what they were about (version, object) and outcome (answered, failed).", "about", "outcome"),
		bodies: counter("relay_source_bytes_total", "Bytes of lists and watches that fed relays, compressed as they came.", "source"),

		heartbeats: counter("heartbeats_total",
			"Heartbeats of this node's kubelet, by outcome: passed to the cloud, refused by it, kept because it cannot be reached.", "outcome"),
		mirrored: counter("heartbeats_mirrored_total", "Heartbeats mirrored in the coordinator, by outcome: written, failed (and tried again), late (given up).", "outcome"),
		forwards: counter("heartbeat_forwards_total",
			"Steps of forwarding heartbeats of other nodes, by step (read-cloud, read-pool, write) and outcome; write ok is a heartbeat forwarded.", "step", "outcome"),
	}
	m.registry.MustRegister(m.contradictions, m.requests, m.refusals, m.stalled, m.forged, m.reviews, m.bodies, m.questions, m.heartbeats, m.mirrored, m.forwards,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) answered(r *recorder) {
	code := "none"
	if r.code != 0 {
		code = strconv.Itoa(r.code)
	}
	m.requests.WithLabelValues(r.route, code).Inc()
}

// state exports what the parts of a hub hold.
type state struct {
	h *Hub

	role, term, ready, fresh, coordinator, cloud, bytes, connections, elections, verdicts, unsaved, switches, lists, resyncs, watches *prometheus.Desc

	cutOff, delegated, expired, forwardAge *prometheus.Desc
	denied, differs                        *prometheus.Desc
}

func newState(h *Hub) *state {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("weir_hub_"+name, help, labels, nil)
	}
	return &state{
		h:           h,
		role:        desc("role", "1 for the role that the hub has now.", "role"),
		term:        desc("term", "Lease version of the hub's leadership, 0 if it does not lead."),
		ready:       desc("coordinator_ready", "1 while the pool's cache is fresh."),
		fresh:       desc("leader_fresh", "1 while a leader's streams from the cloud are fresh, and what they brought arrived at the coordinator."),
		coordinator: desc("coordinator_healthy", "1 while the coordinator answers."),
		cloud:       desc("cloud_server_healthy", "1 while a cloud server answers.", "server"),
		bytes:       desc("cloud_bytes_total", "Bytes to and from the cloud, TLS included, by class of traffic.", "class", "direction"),
		connections: desc("cloud_connections_total", "Connections opened to the cloud, by class of traffic.", "class"),
		elections:   desc("elections_total", "Elections that this hub tried to win, and those it won.", "outcome"),
		verdicts:    desc("authorization_cache_size", "Verdicts remembered."),
		unsaved:     desc("authorization_unsaved", "Changes of who may read without the cloud that are not on the disk yet."),
		switches:    desc("relay_source_switches_total", "Changes of a relay's source.", "resource"),
		lists:       desc("relay_source_lists_total", "Full lists opened to feed a relay, by cause: first, expired (410), history (another one), cheaper.", "resource", "cause"),
		resyncs:     desc("relay_source_resyncs_total", "Times a relay was compared with its source by metadata, after 410.", "resource"),
		watches:     desc("relay_source_watches_total", "Watches opened to feed a relay.", "resource"),
		denied:      desc("relay_denied", "1 while the cloud does not give a resource to this hub (404, 403): requests are the cloud's to answer.", "resource"),
		differs:     desc("resources_differ", "1 for a resource of --pool-scope-resources that the hub, or the coordinator, lacks.", "resource", "lacks"),
		cutOff:      desc("cut_off", "1 while heartbeats of this node's kubelet do not reach the cloud."),
		delegated:   desc("delegated_nodes", "Nodes of the pool that say in the coordinator that they are cut off, as this hub sees it; a leader forwards their heartbeats."),
		expired:     desc("heartbeat_forwards_expired_total", "Heartbeats of other nodes that this hub, as leader, could not forward in time."),
		forwardAge:  desc("heartbeat_forward_age_seconds", "Time since this hub last forwarded a heartbeat; absent if it never did."),
	}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s *state) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	for _, srv := range s.h.cloud.servers {
		gauge(s.cloud, number(srv.ok()), srv.name)
	}
	for _, c := range classes {
		m := s.h.cloud.meters[c]
		counter(s.bytes, float64(m.read.Load()), string(c), "down")
		counter(s.bytes, float64(m.written.Load()), string(c), "up")
		counter(s.connections, float64(m.connections.Load()), string(c))
	}
	gauge(s.verdicts, float64(s.h.front.authorizer.size()))
	if j := s.h.judge; j != nil { // it is made later than this is registered
		gauge(s.unsaved, float64(j.Unsaved()))
	}
	for _, f := range s.h.feeders {
		st := f.Status()
		name := f.resource
		counter(s.switches, float64(st.Switches), name)
		for cause, n := range st.Lists.All() {
			counter(s.lists, float64(n), name, string(cause))
		}
		counter(s.resyncs, float64(st.Resyncs), name)
		counter(s.watches, float64(st.Watches), name)
		gauge(s.denied, number(f.relay.Denied() != nil), name)
	}
	gauge(s.cutOff, number(s.h.front.beats.status().CutOff))
	if s.h.pool == nil {
		return
	}
	differences := s.h.pool.shared.differences()
	for lacks, resources := range map[string][]string{"coordinator": differences.Coordinator, "hub": differences.Hub} {
		for _, r := range resources {
			gauge(s.differs, 1, r, lacks)
		}
	}
	d := s.h.pool.forwarding.current()
	gauge(s.delegated, float64(d.Nodes))
	counter(s.expired, float64(d.Expired))
	if !d.Last.IsZero() {
		gauge(s.forwardAge, s.h.clock.Since(d.Last).Seconds())
	}
	snap := s.h.pool.snapshot()
	for _, r := range []role.Role{role.Pending, role.Follower, role.Leader} {
		gauge(s.role, number(r == snap.Role), r.String())
	}
	counter(s.elections, float64(s.h.pool.tried.Load()), "tried")
	counter(s.elections, float64(s.h.pool.won.Load()), "won")
	gauge(s.term, float64(snap.Term.Version))
	gauge(s.ready, number(snap.Ready))
	gauge(s.fresh, number(s.h.pool.fresh.Load()))
	gauge(s.coordinator, number(s.h.pool.checker.ok()))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// body counts what feeds relays from a source.
func (m *metrics) body(from role.Source) func(int) {
	c := m.bodies.WithLabelValues(from.String())
	return func(n int) { c.Add(float64(n)) }
}
