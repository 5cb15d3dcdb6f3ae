package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/runtime"
)

const (
	maxSettle         = 10 * time.Minute
	minNodesWithNames = 3
)

// Autonomy makes a scenario one about nodes that live on without the cloud: real kubelets with pods of their own,
// machines that restart meanwhile, and what cloud and node must agree about in the end. It runs as two columns: stock
// Kubernetes that stays connected, whose kubelets restart in the same way, then Weir.
type Autonomy struct {
	PodsPerNode int           `yaml:"podsPerNode"` // half of them run for ever, the others until they finish
	Settle      time.Duration `yaml:"settle"`      // from the last heal until cloud and nodes must agree
	FirstBoot   bool          `yaml:"firstBoot,omitempty"`
	// Services lead to all pods; 0: there are none. Clients on each node call them. Stock nodes are then cut off as well.
	Services int `yaml:"services,omitempty"`
	// Names: Services are called by their names, by way of CoreDNS, a Service of two pods, and of the node's kube-proxy.
	Names     bool              `yaml:"names,omitempty"`
	Addresses runtime.Addresses `yaml:"addresses,omitempty"` // that pods get when their machine starts again
}

func (v value) autonomy() *Autonomy {
	a := &Autonomy{PodsPerNode: 2, Settle: 30 * time.Second}
	o, ok := v.object("podsPerNode", "settle", "firstBoot", "services", "names", "addresses")
	if !ok {
		return a
	}
	if o.has("podsPerNode") {
		a.PodsPerNode = o.count("podsPerNode", maxPodsPerNode)
	}
	if o.has("settle") {
		a.Settle = o.fields["settle"].duration(maxSettle)
	}
	if o.has("firstBoot") {
		a.FirstBoot = o.fields["firstBoot"].boolean()
	}
	if o.has("services") {
		a.Services = o.count("services", maxPodsPerNode)
	}
	if o.has("names") {
		a.Names = o.fields["names"].boolean()
	}
	if o.has("addresses") {
		name, _ := o.fields["addresses"].choice([]string{
			string(runtime.SameAddresses), string(runtime.OtherAddresses), string(runtime.SwappedAddresses),
		})
		a.Addresses = runtime.Addresses(name)
	}
	return a
}

// withAutonomy reads what only such scenarios have, and refuses what they have no use for.
func (o object) withAutonomy(s *Scenario) {
	s.Autonomy = o.fields["autonomy"].autonomy()
	for _, name := range []string{"clients", "compare", "workload"} {
		if o.has(name) {
			o.fields[name].contradiction("a scenario with autonomy has kubelets and pods of its own: leave it out")
		}
	}
	if s.Autonomy.FirstBoot && s.Topology.Pool.Coordinators == 0 {
		o.fields["autonomy"].contradiction(
			"firstBoot: the pool comes up without the cloud: want topology.pool.coordinators: 1")
	}
	if a := s.Autonomy; a.Names && (a.Services == 0 || s.Topology.Pool.Nodes < minNodesWithNames) {
		o.fields["autonomy"].contradiction(
			"names: Services are called from a node without CoreDNS, which is on two: want services, and three nodes or more")
	}
	if a := s.Autonomy; a.Services > 0 && (a.FirstBoot || a.Services > a.PodsPerNode) {
		o.fields["autonomy"].contradiction(
			"services: each has a pod of each node, and the cloud says which: want no more than podsPerNode, and no firstBoot")
	}
}

// AutonomyTopology is a site of such a scenario, in one of its modes.
func (s *Scenario) AutonomyTopology(mode runtime.Mode) runtime.Topology {
	pool := s.Topology.Pool.RuntimePool(mode)
	if mode != runtime.Stock {
		pool = s.WeirPool()
	}
	pool.Kubelets, pool.Addresses, pool.Names = true, s.Autonomy.Addresses, s.Autonomy.Names
	pool.Unread = s.Autonomy.Services > 0 // so that relays are there before the clients, as long before a cut as possible
	return runtime.Topology{Pools: []runtime.Pool{pool}, Endpoints: s.Autonomy.Services > 0}
}

// autonomyRules are what may happen to nodes that live on.
func autonomyRules() []allowed {
	return append([]allowed{
		mayTo(&Cut{}, nil, hubPrefix, WholePool), mayTo(&Kill{}, nil, hubPrefix, kubeletPrefix, Coordinator),
		mayTo(&Vanish{}, nil, hubPrefix, WholePool),
	}, may(&FillDisk{}, &Exit{}, &Finish{}, &Delete{}, &Attempt{}, &Expire{})...)
}

// scribeMetrics are measured where there are no Services: writes of scribes would be in the way of what a kubelet says
// of its pods.
func scribeMetrics() []string {
	return []string{
		"lost_writes", "taken_writes", "offline_reads_served", "offline_reads_refused", "wrong_answers",
		"pods_back_stock_seconds", "pods_back_later_seconds",
	}
}

// lateCalls is measured where Services are called by their names.
const lateCalls = "late_failed_calls"

// routeMetrics are measured where there are Services.
func routeMetrics() []string {
	return []string{
		"moved_seconds_p99", "stock_moved_seconds_p99", "moved_pods", "wrong_routes", "routes_back", "wrong_versions",
		"calls_to_dead",
		"calls", "failed_calls", "stock_failed_calls", lateCalls,
	}
}

// autonomyMetrics are measured in scenarios with autonomy, and nothing else is.
func autonomyMetrics() []string {
	return slices.Concat(scribeMetrics(), routeMetrics(), []string{
		"pods_apart",
		"damage_found",
		"collections_refetched_share", "doubled_writes", "pods_back_seconds", "first_offline_answer_seconds",
		"agreed_seconds", "deleted_left", "store_bytes", "disk_bytes_written", "refused_attempts", "allowed_attempts",
		"wrong_attempts",
		"return_peak_ratio", "joined_nodes",
	})
}

// cannotLiveOn tells why a metric does not belong into the scenario; empty: it does.
func (s *Scenario) cannotLiveOn(metric string) string {
	measured := slices.Contains(autonomyMetrics(), metric)
	switch {
	case s.Autonomy == nil && measured && !slices.Contains(evictionMetrics(), metric):
		return fmt.Sprintf("%s is measured when nodes live on without the cloud: want autonomy:", metric)
	case s.Autonomy != nil && !measured:
		return fmt.Sprintf("%s is not measured in a scenario with autonomy; want one of %s", metric,
			strings.Join(autonomyMetrics(), ", "))
	case s.Autonomy != nil && s.Autonomy.Services == 0 && slices.Contains(routeMetrics(), metric):
		return metric + " is measured where Services lead to pods: want autonomy.services: 1 or more"
	case s.Autonomy != nil && !s.Autonomy.Names && metric == lateCalls:
		return metric + " is measured where Services are called by their names: want autonomy.names: true"
	case s.Autonomy != nil && s.Autonomy.Services > 0 && slices.Contains(scribeMetrics(), metric):
		return metric + " is not measured where Services lead to pods: leave services out"
	case s.Autonomy != nil:
		return (*Attempt)(nil).unmeasured(metric, s)
	}
	return ""
}

// Restarts reports whether something restarts that a connected stock node has, too.
func (s *Scenario) Restarts() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		_, kubelet := f.Target.Kubelet()
		return is[*Vanish](f) || is[*Kill](f) && kubelet
	})
}
