package manager

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/manager/certificates"
	"github.com/weir-edge/weir/impl/manager/jobs"
	"github.com/weir-edge/weir/impl/manager/pools"
	"github.com/weir-edge/weir/impl/manager/renewals"
	"github.com/weir-edge/weir/impl/manager/revocation"
	"github.com/weir-edge/weir/impl/manager/verdict"
	"github.com/weir-edge/weir/impl/process"
)

// metrics are the manager's own. Those of controllers, of the leader election and of requests come from
// controller-runtime.
type metrics struct {
	board *board
	hubs  *pools.Ledger

	heartbeats   prometheus.Counter
	taints       *prometheus.CounterVec
	conditions   *prometheus.CounterVec
	keepWrites   prometheus.Counter
	keepFailures prometheus.Counter
	releases     prometheus.Counter
	missing      prometheus.Gauge
	certificates *certificates.Metrics
	revocations  *revocation.Metrics
	leaderHubs   *pools.Metrics
	installs     *jobs.Metrics
	renewals     *renewals.Metrics

	nodes, marked, pools, deaf, silent, cutOff *prometheus.Desc
}

func newMetrics(b *board) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_manager_" + name, Help: help})
	}
	return &metrics{
		board:      b,
		hubs:       pools.NewLedger(b.clock),
		heartbeats: counter("heartbeats_total", "Changes of renewTime seen in Leases of nodes."),
		taints: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_taint_changes_total", Help: "Taints of delegated nodes set (add) and taken away (remove).",
		}, []string{"change"}),
		conditions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_manager_condition_changes_total", Help: "Changes of the condition of a Node, by its new reason.",
		}, []string{"reason"}),
		keepWrites:   counter("kept_writes_total", "Writes of the ConfigMaps that the admission policies read."),
		keepFailures: counter("kept_failures_total", "Failed reads or writes of these ConfigMaps."),
		releases:     counter("releases_total", "Nodes whose pods were left to taint eviction after they had been kept."),
		missing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_manager_policies_missing",
			Help: "Admission policies, bindings and ConfigMaps that are not there or say something else.",
		}),
		certificates: certificates.NewMetrics(),
		revocations:  revocation.NewMetrics(),
		leaderHubs:   pools.NewMetrics(),
		installs:     jobs.NewMetrics(),
		renewals:     renewals.NewMetrics(),

		nodes: prometheus.NewDesc("weir_manager_nodes", "Nodes by what is known of them.", []string{"state"}, nil),
		marked: prometheus.NewDesc("weir_manager_nodes_marked", "Nodes that are dead, kept, bound or owed a release.",
			[]string{"mark"}, nil),
		deaf: prometheus.NewDesc("weir_manager_deaf", "1 while no node at all is heard: nothing is given up then.", nil,
			nil),
		pools: prometheus.NewDesc("weir_manager_pools", "Pools: heard, silent (pods are kept), given up (pods are evicted).",
			[]string{"state"}, nil),
		silent: prometheus.NewDesc("weir_manager_pool_silent", "1 while no node of a pool is heard, and its pods are kept.",
			[]string{"pool"}, nil),
		cutOff: prometheus.NewDesc("weir_manager_node_cut_off",
			"1 while a node is heard through its pool only. Absent otherwise.", []string{"pool", "node"}, nil),
	}
}

func (m *metrics) counters() []prometheus.Collector {
	own := []prometheus.Collector{
		process.Collector("weir-manager"), m.heartbeats, m.taints, m.conditions, m.keepWrites, m.keepFailures, m.releases,
		m.missing, m.hubs,
	}
	return slices.Concat(own, m.certificates.Collectors(), m.revocations.Collectors(), m.leaderHubs.Collectors(),
		m.installs.Collectors(), m.renewals.Collectors())
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.counters() {
		c.Describe(ch)
	}
	ch <- m.nodes
	ch <- m.marked
	ch <- m.pools
	ch <- m.deaf
	ch <- m.silent
	ch <- m.cutOff
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.counters() {
		c.Collect(ch)
	}
	d, _ := m.board.read()
	deaf := 0.0
	if d.Deaf {
		deaf = 1
	}
	ch <- prometheus.MustNewConstMetric(m.deaf, prometheus.GaugeValue, deaf)
	states := map[verdict.State]int{verdict.Unknown: 0, verdict.Normal: 0, verdict.Delegated: 0, verdict.Missing: 0}
	send := func(desc *prometheus.Desc, n int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), labels...)
	}
	for name, v := range d.Nodes {
		if states[v.State]++; v.State == verdict.Delegated {
			send(m.cutOff, 1, v.Pool, name)
		}
	}
	for s, n := range states {
		send(m.nodes, n, s.String())
	}
	r := d.Record
	for mark, names := range map[string][]string{"dead": r.Dead, "kept": r.Kept, "bound": r.Bound, "owed": r.Owed} {
		send(m.marked, len(names), mark)
	}
	pools := map[string]int{"heard": 0, "silent": 0, "given-up": 0}
	for name, p := range d.Pools {
		silent := 0
		switch {
		case p.GivenUp:
			pools["given-up"]++
		case p.Silent:
			pools["silent"]++
			silent = 1
		default:
			pools["heard"]++
		}
		send(m.silent, silent, name)
	}
	for s, n := range pools {
		send(m.pools, n, s)
	}
}
