package crowd

import (
	"context"
	"fmt"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// Run runs a scenario with a crowd: the stock column, then Weir's. The result is worth reporting even with an error: it
// then tells how far the run came.
func Run(ctx context.Context, s *scenario.Scenario, o runner.Options) (report.Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	about := s.Study.(*scenario.Crowd)
	return runner.InColumns(s, o, facts(s, about), func(res *report.Result, w *timeline.Writer) error {
		for _, x := range []struct {
			way, prefix string
			mode        runtime.Mode
		}{{report.WayStock, "stock_", runtime.Stock}, {report.WayWeir, "", layout.Mode(s.Topology.Pool)}} {
			c := &column{Column: runner.Column{Options: o, Way: x.way, Time: w, Every: look}, s: s, about: about, mode: x.mode}
			err := c.run(ctx)
			c.Into(res)
			if err != nil {
				return fmt.Errorf("%s column: %w", x.way, err)
			}
			all, each := extrapolate(s, about, c.counts)
			res.Metrics[x.prefix+"cloud_watches"], res.Metrics[x.prefix+"cloud_connections"] = all.watches, all.connections
			if x.mode != runtime.Stock {
				res.Metrics["follower_watches"], res.Metrics["follower_connections"] = each.watches, each.connections
			}
		}
		res.Metrics["multiplied_share"] = float64(multiplied(s, about)) / float64(about.Pools*s.Topology.Pool.Nodes)
		return nil
	})
}

// count is what a control plane has open.
type count struct {
	watches, connections float64
	classes              map[string]float64 // connections, by the class of what they carry
}

// multiplied is how many nodes do not run.
func multiplied(s *scenario.Scenario, about *scenario.Crowd) int {
	return about.Pools*s.Topology.Pool.Nodes - about.Pools - about.Follow*(about.Run-1)
}

// extrapolate makes of three counts, with no node, the first of each pool and all nodes that run, what all nodes have
// open, and what each node more does.
func extrapolate(s *scenario.Scenario, about *scenario.Crowd, counts [3]count) (all, each count) {
	more := float64(about.Follow * (about.Run - 1))
	of := func(get func(count) float64) (float64, float64) {
		none, one, run := get(counts[0]), get(counts[1]), get(counts[2])
		one, run = one-none, run-none
		node := (run - one) / more
		return one + node*float64(about.Pools*(s.Topology.Pool.Nodes-1)), node
	}
	all.watches, each.watches = of(func(c count) float64 { return c.watches })
	all.connections, each.connections = of(func(c count) float64 { return c.connections })
	return all, each
}

func facts(s *scenario.Scenario, about *scenario.Crowd) []report.Fact {
	return []report.Fact{
		{Name: "pools", Value: float64(about.Pools)}, {Name: "nodes of each pool", Value: float64(s.Topology.Pool.Nodes)},
		{Name: "pools of which more than the first node runs", Value: float64(about.Follow)},
		{Name: "nodes of those that run", Value: float64(about.Run)},
		{Name: "nodes that are multiplied, in all", Value: float64(multiplied(s, about))},
		{Name: "clients per node", Value: float64(len(s.Clients))}, {Name: "Services", Value: float64(s.Workload.Services)},
		{Name: "round trip", Value: s.Topology.Pool.Uplink.RTT.Seconds(), Unit: report.UnitSeconds},
	}
}
