package scenario

import (
	"strings"
	"time"
)

const (
	maxWatch       = time.Hour
	maxPodsPerNode = 12
	maxRollouts    = 10
	maxAfter       = 24 * time.Hour
)

// Eviction makes a scenario one about nodes that are lost: kubelets, the stock controllers, and pods that they may
// evict. It runs as two columns, one after the other: stock Kubernetes, then Weir.
type Eviction struct {
	ordinary `yaml:"-"`

	Timers      TimersName    `yaml:"timers"`
	PodsPerNode int           `yaml:"podsPerNode"` // of one Deployment, with a Service
	Watch       time.Duration `yaml:"watch"`       // from the first fault until a column ends
	Policy      Policy        `yaml:"policy"`      // of the pool when all of it is silent
	Calls       bool          `yaml:"calls,omitempty"`
	// What a stock node has beside its kubelet runs on each node and watches as it does: kube-proxy, a network plugin that
	// watches Nodes, and CoreDNS on the first one.
	Components bool `yaml:"components,omitempty"`
	// How long nothing happens before what a quiet pool costs is measured: kubelets, hubs and the manager have found their
	// pace.
	Settle time.Duration `yaml:"settle,omitempty"`
	// How often all pods are replaced, one rolling update after the other, once nothing has happened for a while.
	Rollouts int `yaml:"rollouts,omitempty"`
	// The last node of the pool starts only then, with nothing on its disk.
	Joins bool `yaml:"joins,omitempty"`
}

// TimersName says which timers controllers and kubelets have.
type TimersName string

// The timers.
const (
	StockTimers TimersName = "stock" // those of Kubernetes
	FastTimers  TimersName = "fast"  // two fifths of them, all in proportion
)

// Name implements Study.
func (*Eviction) Name() string { return "eviction" }

func (e *Eviction) fields(v value) {
	o, ok := v.object("timers", "podsPerNode", "watch", "policy", "calls", "components", "settle", "rollouts",
		"joins")
	if !ok {
		return
	}
	name, _ := o.fields["timers"].choice([]string{string(StockTimers), string(FastTimers)})
	e.Timers = TimersName(name)
	e.PodsPerNode = 1
	if o.has("podsPerNode") {
		e.PodsPerNode = o.count("podsPerNode", maxPodsPerNode)
	}
	e.Watch = o.fields["watch"].duration(maxWatch)
	if o.has("policy") {
		e.Policy = o.fields["policy"].policy()
	}
	if o.has("calls") {
		e.Calls = o.fields["calls"].boolean()
	}
	if o.has("components") {
		e.Components = o.fields["components"].boolean()
	}
	if o.has("settle") {
		e.Settle = o.fields["settle"].duration(maxSettle)
	}
	if o.has("rollouts") {
		e.Rollouts = o.count("rollouts", maxRollouts)
	}
	if o.has("joins") {
		e.Joins = o.fields["joins"].boolean()
	}
}

// Beside is a healthy pool of plain Kubernetes with nothing between it and the cloud.
type Beside struct {
	Name  string `yaml:"name"`
	Nodes int    `yaml:"nodes"`
}

func (v value) beside(pool string) *Beside {
	b := &Beside{}
	if o, ok := v.object("name", "nodes"); ok {
		b.Name = o.name("name", maxPoolName)
		b.Nodes = o.count("nodes", maxNodes)
		if b.Name != "" && b.Name == pool {
			o.fields["name"].contradiction("topology.pool has that name: want another one")
		}
	}
	return b
}

func (e *Eviction) read(o object, s *Scenario) {
	e.fields(o.fields["eviction"])
	for _, name := range []string{"clients", "compare"} {
		if v := o.fields[name]; o.has(name) && len(v.list("[]")) > 0 {
			v.contradiction("a scenario with eviction has pods of its own and compares with stock Kubernetes: leave it out")
		}
	}
	if s.Topology.Beside == nil {
		o.fields["topology"].contradiction(
			"without a healthy zone beside, stock Kubernetes evicts nothing when all of a pool is lost: want beside: {name: " +
				"town, nodes: 3}")
	}
	if s.Topology.Pool.Coordinators == 0 {
		o.fields["topology"].contradiction("topology.pool.coordinators is 0, so no heartbeat can be delegated: want 1 or 3")
	}
	if e.Joins && s.Topology.Pool.Nodes < 2 {
		o.fields["eviction"].contradiction(
			"the one node of the pool cannot join it later: want topology.pool.nodes: 2 or more")
	}
	if o.has("workload") {
		s.Workload = o.fields["workload"].workload()
	}
}

// rules are the actions that stock Kubernetes can be put through as well.
func (*Eviction) rules() []allowed {
	return append([]allowed{
		mayTo(&Kill{}, []string{"disk"}, Leader, hubPrefix, kubeletPrefix, Coordinator, APIServer),
		mayTo(&Vanish{}, []string{"disk", "repeat", "every"}, hubPrefix),
		mayTo(&Cut{}, nil, hubPrefix, Followers, WholePool),
	}, may(&Slow{}, &SetPolicy{}, &Unready{})...)
}

// stockEvictions is the metric that every scenario with eviction states something about.
const stockEvictions = "stock_evictions"

// metrics are measured in scenarios with eviction, and nothing else is.
func (*Eviction) metrics() []string {
	return []string{
		"wrong_evictions", "missed_evictions", stockEvictions, "not_ready_while_delegated", "stock_not_ready",
		lateHeartbeats,
		"failed_calls", "stock_failed_calls", "calls", "heartbeat_bytes_per_second", "heartbeat_bytes_per_minute",
		"delegation_bytes_per_second",
		"detect_seconds_max",
		"quiet_received_bytes_per_second", "stock_quiet_received_bytes_per_second",
		"quiet_bytes_per_node_second", "stock_quiet_bytes_per_node_second", "quiet_bytes_ratio",
		"quiet_connections_per_node", "stock_quiet_connections_per_node",
		"update_bytes", "stock_update_bytes", "node_bytes_ratio", "stock_shareable_bytes", "saved_bytes",
		"saved_bytes_told_ratio",
		"join_bytes", "stock_join_bytes", "join_bytes_ratio",
		"eviction_later_seconds_max", "marks_missing", "marks_left", "store_reads", "kept_heartbeats",
	}
}

func (*Eviction) wanted(metric string, _ *Scenario) string {
	return metric + " is measured when nodes are lost: want eviction:"
}

func (e *Eviction) unmeasured(metric string, _ *Scenario) string {
	switch {
	case e.Rollouts == 0 && (metric == "node_bytes_ratio" || strings.HasSuffix(metric, "update_bytes") ||
		strings.Contains(metric, "saved_bytes") || metric == "stock_shareable_bytes"):
		return metric + " is measured while pods are replaced: want eviction.rollouts: 1 or more"
	case !e.Joins && strings.Contains(metric, "join_"):
		return metric + " is measured while a node joins: want eviction.joins: true"
	case !e.Calls && strings.HasSuffix(metric, "calls"):
		return metric + " is measured by clients in the pool: want eviction.calls: true"
	}
	return ""
}

func (*Eviction) proof() (metric, why string) {
	return stockEvictions, "what stock Kubernetes survives proves nothing: want an expectation of " + stockEvictions
}

func (*Eviction) compared() bool { return true }
