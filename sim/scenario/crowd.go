package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	maxCrowdPools = 200
	maxCrowdRun   = 5
)

// Crowd makes a scenario one about many pools at one control plane: what each node more costs kube-apiserver in watches
// and connections. It runs as two columns: stock Kubernetes, then Weir. Pools are all there, and the first node of each
// runs. Of some, others run too; what those cost counts for all that do not run.
type Crowd struct {
	Pools int `yaml:"pools"` // copies of topology.pool
	Run   int `yaml:"run"`   // nodes of a pool that run
	// Follow is of how many pools more than the first node runs. A small machine cannot run those of all, and each costs
	// what the others do.
	Follow int `yaml:"follow"`
}

// withCrowd reads what only such scenarios have, and refuses what they have no use for.
func (o object) withCrowd(s *Scenario) {
	s.Crowd = &Crowd{}
	if c, ok := o.fields["crowd"].object("pools", "run", "follow"); ok {
		s.Crowd.Pools = c.count("pools", maxCrowdPools)
		n, _ := c.fields["run"].integer(2, maxCrowdRun)
		s.Crowd.Run, s.Crowd.Follow = int(n), s.Crowd.Pools
		if c.has("follow") {
			s.Crowd.Follow = c.count("follow", max(1, s.Crowd.Pools))
		}
		if p := s.Topology.Pool; p.Nodes > 0 && s.Crowd.Run > p.Nodes {
			c.fields["run"].contradiction(fmt.Sprintf("topology.pool.nodes is %d: want at most as many", p.Nodes))
		}
	}
	s.Workload, s.Clients = o.fields["workload"].workload(), o.fields["clients"].clients()
	for _, name := range []string{"compare", "faults"} {
		if o.has(name) && len(o.fields[name].list("[]")) > 0 {
			o.fields[name].contradiction("a scenario with crowd counts watches of pools that nothing happens to, and always " +
				"compares with stock Kubernetes: leave it out")
		}
	}
	if slices.Contains(s.Clients, Kubectl) {
		o.fields["clients"].contradiction("kubectl watches nothing: leave it out")
	}
	if s.Workload.Changes > 0 {
		o.fields["workload"].contradiction("changes cost no watch: want changes: 0")
	}
}

// CrowdTopology is a site of such a scenario, in one of its modes: its pools, of which only the nodes that run are
// there.
func (s *Scenario) CrowdTopology(mode runtime.Mode) runtime.Topology {
	asks := mode != runtime.Stock && s.Topology.Pool.Asks()
	t := runtime.Topology{Manager: asks, Described: asks}
	for i := range s.Crowd.Pools {
		p := s.Topology.Pool.RuntimePool(mode)
		p.Name, p.Nodes, p.Bare = fmt.Sprintf("%s-%03d", p.Name, i+1), s.Crowd.Run, mode == runtime.Stock
		t.Pools = append(t.Pools, p)
	}
	return t
}

// crowdMetrics are measured in scenarios with crowd, and nothing else is.
func crowdMetrics() []string {
	return []string{
		"cloud_watches", "stock_cloud_watches", "cloud_connections", "stock_cloud_connections", "follower_watches",
		"follower_connections", "multiplied_share",
	}
}

// cannotCount tells why a metric does not belong into the scenario; empty: it does.
func (s *Scenario) cannotCount(metric string) string {
	measured := slices.Contains(crowdMetrics(), metric)
	switch {
	case s.Crowd == nil && strings.HasSuffix(metric, "cloud_watches") && s.Changes() &&
		!slices.Contains(s.Compare, report.WayReference):
		return ""
	case s.Crowd == nil && measured:
		return metric + " is measured where nothing but one way runs at a control plane: want crowd:, or for watches a " +
			"change of an object, and no reference"
	case s.Crowd != nil && !measured:
		return fmt.Sprintf("%s is not measured in a scenario with crowd; want one of %s", metric,
			strings.Join(crowdMetrics(), ", "))
	}
	return ""
}
