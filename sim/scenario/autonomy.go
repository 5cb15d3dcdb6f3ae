package scenario

import (
	"slices"
	"time"
)

const (
	maxSettle         = 10 * time.Minute
	minNodesWithNames = 3
)

// Autonomy makes a scenario one about nodes that live on without the cloud: real kubelets with pods of their own,
// machines that restart meanwhile, and what cloud and node must agree about in the end. It runs as two columns: stock
// Kubernetes that stays connected, whose kubelets restart in the same way, then Weir.
type Autonomy struct {
	ordinary `yaml:"-"`

	PodsPerNode int           `yaml:"podsPerNode"` // half of them run for ever, the others until they finish
	Settle      time.Duration `yaml:"settle"`      // from the last heal until cloud and nodes must agree
	FirstBoot   bool          `yaml:"firstBoot,omitempty"`
	// Services lead to all pods; 0: there are none. Clients on each node call them. Stock nodes are then cut off as well.
	Services int `yaml:"services,omitempty"`
	// Names: Services are called by their names, by way of CoreDNS, a Service of two pods, and of the node's kube-proxy.
	Names     bool      `yaml:"names,omitempty"`
	Addresses Addresses `yaml:"addresses,omitempty"` // that pods get when their machine starts again
}

// Addresses says which addresses pods get when their machine starts again.
type Addresses string

// The addresses.
const (
	SameAddresses    Addresses = "same"
	OtherAddresses   Addresses = "other"
	SwappedAddresses Addresses = "swapped"
)

// Name implements Study.
func (*Autonomy) Name() string { return "autonomy" }

func (a *Autonomy) fields(v value) {
	a.PodsPerNode, a.Settle = 2, 30*time.Second
	o, ok := v.object("podsPerNode", "settle", "firstBoot", "services", "names", "addresses")
	if !ok {
		return
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
			string(SameAddresses), string(OtherAddresses), string(SwappedAddresses),
		})
		a.Addresses = Addresses(name)
	}
}

func (a *Autonomy) read(o object, s *Scenario) {
	a.fields(o.fields["autonomy"])
	for _, name := range []string{"clients", "compare", "workload"} {
		if o.has(name) {
			o.fields[name].contradiction("a scenario with autonomy has kubelets and pods of its own: leave it out")
		}
	}
	if a.FirstBoot && s.Topology.Pool.Coordinators == 0 {
		o.fields["autonomy"].contradiction(
			"firstBoot: the pool comes up without the cloud: want topology.pool.coordinators: 1")
	}
	if a.Names && (a.Services == 0 || s.Topology.Pool.Nodes < minNodesWithNames) {
		o.fields["autonomy"].contradiction(
			"names: Services are called from a node without CoreDNS, which is on two: want services, and three nodes or more")
	}
	if a.Services > 0 && (a.FirstBoot || a.Services > a.PodsPerNode) {
		o.fields["autonomy"].contradiction(
			"services: each has a pod of each node, and the cloud says which: want no more than podsPerNode, and no firstBoot")
	}
}

// rules are what may happen to nodes that live on.
func (*Autonomy) rules() []allowed {
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

// metrics are measured in scenarios with autonomy, and nothing else is.
func (*Autonomy) metrics() []string {
	return slices.Concat(scribeMetrics(), routeMetrics(), []string{
		"pods_apart",
		"damage_found",
		"collections_refetched_share", "doubled_writes", "pods_back_seconds", "first_offline_answer_seconds",
		"agreed_seconds", "deleted_left", "store_bytes", "disk_bytes_written", "refused_attempts", "allowed_attempts",
		"wrong_attempts",
		"return_peak_ratio", "joined_nodes",
	})
}

func (*Autonomy) wanted(metric string, _ *Scenario) string {
	return metric + " is measured when nodes live on without the cloud: want autonomy:"
}

func (a *Autonomy) unmeasured(metric string, s *Scenario) string {
	switch {
	case a.Services == 0 && slices.Contains(routeMetrics(), metric):
		return metric + " is measured where Services lead to pods: want autonomy.services: 1 or more"
	case !a.Names && metric == lateCalls:
		return metric + " is measured where Services are called by their names: want autonomy.names: true"
	case a.Services > 0 && slices.Contains(scribeMetrics(), metric):
		return metric + " is not measured where Services lead to pods: leave services out"
	}
	return (*Attempt)(nil).unmeasured(metric, s)
}

// Hollow implements Study.
func (*Autonomy) Hollow() (bool, string) {
	return true, "; nodes that restart without the cloud are in make test-kind LABELS=offline"
}

// Restarts reports whether something restarts that a connected stock node has, too.
func (s *Scenario) Restarts() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		_, kubelet := f.Target.Kubelet()
		return is[*Vanish](f) || is[*Kill](f) && kubelet
	})
}
