package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-edge/weir/sim/report"
)

const (
	maxCrowdPools = 200
	maxCrowdRun   = 5
)

// Crowd makes a scenario one about many pools at one control plane: what each node more costs kube-apiserver in watches
// and connections. It runs as two columns: stock Kubernetes, then Weir. Pools are all there, and the first node of each
// runs. Of some, others run too; what those cost counts for all that do not run.
type Crowd struct {
	ordinary `yaml:"-"`

	Pools int `yaml:"pools"` // copies of topology.pool
	Run   int `yaml:"run"`   // nodes of a pool that run
	// Follow is of how many pools more than the first node runs. A small machine cannot run those of all, and each costs
	// what the others do.
	Follow int `yaml:"follow"`
}

// Name implements Study.
func (*Crowd) Name() string { return "crowd" }

func (k *Crowd) read(o object, s *Scenario) {
	if c, ok := o.fields["crowd"].object("pools", "run", "follow"); ok {
		k.Pools = c.count("pools", maxCrowdPools)
		n, _ := c.fields["run"].integer(2, maxCrowdRun)
		k.Run, k.Follow = int(n), k.Pools
		if c.has("follow") {
			k.Follow = c.count("follow", max(1, k.Pools))
		}
		if p := s.Topology.Pool; p.Nodes > 0 && k.Run > p.Nodes {
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

// metrics are measured in scenarios with crowd, and nothing else is.
func (*Crowd) metrics() []string {
	return []string{
		"cloud_watches", "stock_cloud_watches", "cloud_connections", "stock_cloud_connections", "follower_watches",
		"follower_connections", "multiplied_share",
	}
}

func (*Crowd) wanted(metric string, s *Scenario) string {
	if strings.HasSuffix(metric, "cloud_watches") && s.Changes() && !slices.Contains(s.Compare, report.WayReference) {
		return ""
	}
	return metric + " is measured where nothing but one way runs at a control plane: want crowd:, or for watches a " +
		"change of an object, and no reference"
}
