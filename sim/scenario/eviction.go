package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	maxWatch       = time.Hour
	maxPodsPerNode = 12
	maxRollouts    = 10
	maxAfter       = 24 * time.Hour
	// fastBy is how much faster the fast timers are, all in proportion. What Weir itself takes at most until a heartbeat
	// is delegated does not become shorter with them (package heartbeat), so they may not be much faster.
	fastBy = 2.5
)

// Eviction makes a scenario one about nodes that are lost: kubelets, the stock controllers, and pods that they may
// evict. It runs as two columns, one after the other: stock Kubernetes, then Weir.
type Eviction struct {
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

// Timers are those that the name means.
func (n TimersName) Timers() cloud.Timers {
	if n == FastTimers {
		return cloud.StockTimers().Faster(fastBy)
	}
	return cloud.StockTimers()
}

func (v value) eviction() *Eviction {
	e := &Eviction{}
	o, ok := v.object("timers", "podsPerNode", "watch", "policy", "calls", "components", "settle", "rollouts",
		"joins")
	if !ok {
		return e
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
	return e
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

// withEviction reads what only such scenarios have, and refuses what they have no use for.
func (o object) withEviction(s *Scenario) {
	s.Eviction = o.fields["eviction"].eviction()
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
	if s.Eviction.Joins && s.Topology.Pool.Nodes < 2 {
		o.fields["eviction"].contradiction(
			"the one node of the pool cannot join it later: want topology.pool.nodes: 2 or more")
	}
	if o.has("workload") {
		s.Workload = o.fields["workload"].workload()
	}
}

// ColumnTopology is a site of an eviction scenario: the pool in one of its modes, and the healthy one beside it.
func (s *Scenario) ColumnTopology(mode runtime.Mode) runtime.Topology {
	pool := s.Topology.Pool.RuntimePool(mode)
	if mode == runtime.Weir {
		pool = s.WeirPool()
	}
	beside := runtime.Pool{
		Name: s.Topology.Beside.Name, Nodes: s.Topology.Beside.Nodes, Mode: runtime.Stock, Unlinked: true,
	}
	pool.Kubelets, beside.Kubelets = true, true
	pool.Zoneless, beside.Zoneless = s.Topology.Zoneless, s.Topology.Zoneless
	return runtime.Topology{
		Pools: []runtime.Pool{pool, beside}, Controllers: true, Manager: mode == runtime.Weir,
		Timers: s.Eviction.Timers.Timers(), Frames: s.Eviction.Components,
		Unready: happen[*Unready](s),
	}
}

// evictionRules are the actions that stock Kubernetes can be put through as well.
func evictionRules() []allowed {
	return append([]allowed{
		mayTo(&Kill{}, []string{"disk"}, Leader, hubPrefix, kubeletPrefix, Coordinator, APIServer),
		mayTo(&Vanish{}, []string{"disk", "repeat", "every"}, hubPrefix),
		mayTo(&Cut{}, nil, hubPrefix, Followers, WholePool),
	}, may(&Slow{}, &SetPolicy{}, &Unready{})...)
}

// stockEvictions is the metric that every scenario with eviction states something about.
const stockEvictions = "stock_evictions"

// evictionMetrics are measured in scenarios with eviction, and nothing else is.
func evictionMetrics() []string {
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

// cannotEvict tells why a metric does not belong into the scenario; empty: it does.
func (s *Scenario) cannotEvict(metric string, measured bool) string {
	switch {
	case s.Eviction == nil && measured:
		return fmt.Sprintf("%s is measured when nodes are lost: want eviction:", metric)
	case s.Eviction != nil && !measured:
		return fmt.Sprintf("%s is not measured in a scenario with eviction; want one of %s", metric,
			strings.Join(evictionMetrics(), ", "))
	case s.Eviction != nil && s.Eviction.Rollouts == 0 &&
		(metric == "node_bytes_ratio" || strings.HasSuffix(metric, "update_bytes") ||
			strings.Contains(metric, "saved_bytes") || metric == "stock_shareable_bytes"):
		return metric + " is measured while pods are replaced: want eviction.rollouts: 1 or more"
	case s.Eviction != nil && !s.Eviction.Joins && strings.Contains(metric, "join_"):
		return metric + " is measured while a node joins: want eviction.joins: true"
	case s.Eviction != nil && !s.Eviction.Calls && strings.HasSuffix(metric, "calls"):
		return metric + " is measured by clients in the pool: want eviction.calls: true"
	}
	return ""
}
