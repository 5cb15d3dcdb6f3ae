package pulls

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

// Run runs a scenario with images: the stock column, if there is one, then Weir's. The result is worth reporting even
// with an error: it then tells how far the run came.
func Run(ctx context.Context, s *scenario.Scenario, o runner.Options) (report.Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return runner.InColumns(s, o, facts(s), func(res *report.Result, w *timeline.Writer) error {
		modes := []runtime.Mode{layout.Mode(s.Topology.Pool)}
		if len(s.Compare) > 0 {
			modes = []runtime.Mode{runtime.Stock, layout.Mode(s.Topology.Pool)}
		}
		for _, mode := range modes {
			c := newColumn(s, o, w, mode)
			err := c.run(ctx)
			c.Into(res)
			if err != nil {
				return fmt.Errorf("%s column: %w", c.Way, err)
			}
			c.outcome().measure(res.Metrics, mode == runtime.Stock)
		}
		stock, weir := res.Metrics["stock_image_seconds"], res.Metrics["image_seconds"]
		if stock > 0 && weir > 0 {
			res.Metrics["image_seconds_ratio"] = weir / stock
		}
		return nil
	})
}

func facts(s *scenario.Scenario) []report.Fact {
	var size float64
	about := s.Study.(*scenario.Images)
	for _, l := range about.Layers {
		size += float64(l)
	}
	return []report.Fact{
		{Name: "nodes", Value: float64(s.Topology.Pool.Nodes)},
		{Name: "layers of the image", Value: float64(len(about.Layers))},
		{Name: "size of them all", Value: size, Unit: report.UnitBytes},
		{Name: "round trip", Value: s.Topology.Pool.Uplink.RTT.Seconds(), Unit: report.UnitSeconds},
	}
}
