package autonomy

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// Run runs a scenario with autonomy: the stock column, then Weir's. The result is worth reporting even with an error:
// it then tells how far the run came.
func Run(ctx context.Context, s *scenario.Scenario, o runner.Options) (report.Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	about := s.Study.(*scenario.Autonomy)
	return runner.InColumns(s, o, []report.Fact{
		{
			Name: "nodes", Value: float64(s.Topology.Pool.Nodes),
		}, {Name: "pods per node", Value: float64(about.PodsPerNode)},
		{Name: "round trip", Value: s.Topology.Pool.Uplink.RTT.Seconds(), Unit: report.UnitSeconds},
	}, func(res *report.Result, w *timeline.Writer) error { return columns(ctx, s, o, res, w) })
}

// columns runs both, or only Weir's if the stock one has nothing to compare with.
func columns(ctx context.Context, s *scenario.Scenario, o runner.Options, res *report.Result,
	w *timeline.Writer) error {
	modes := []runtime.Mode{runtime.Stock, layout.Mode(s.Topology.Pool)}
	if !s.Restarts() { // there is nothing to compare with
		modes = modes[1:]
	}
	for _, mode := range modes {
		c := newColumn(s, o, w, mode)
		err := c.run(ctx)
		c.Into(res)
		if err != nil {
			return fmt.Errorf("%s column: %w", c.Way, err)
		}
		c.measure(res.Metrics)
	}
	if stock, ok := res.Metrics["pods_back_stock_seconds"]; ok {
		res.Metrics["pods_back_later_seconds"] = max(res.Metrics["pods_back_seconds"]-stock, 0)
	}
	return nil
}

// measure makes metrics of what came of a column.
func (c *column) measure(m report.Values) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.led != nil:
		c.led.measure(m, c.weir)
	case c.weir:
		c.writes.measure(m)
	default:
		m["pods_back_stock_seconds"] = c.back.Seconds()
	}
	if !c.weir {
		return
	}
	m["doubled_writes"], m["pods_apart"] = float64(c.recorder.doubled()), float64(c.apart)
	m["damage_found"], m["collections_refetched_share"] = float64(c.disk.sum().damaged), c.refetched()
	m["deleted_left"], m["joined_nodes"] = float64(c.left), float64(c.joined)
	m["store_bytes"], m["disk_bytes_written"] = float64(c.storeBytes), float64(c.disk.sum().written)
	if c.agreed > 0 {
		m["agreed_seconds"] = c.agreed.Seconds()
	}
	if c.restarts > 0 {
		m["pods_back_seconds"] = c.back.Seconds()
	}
	if c.firstAnswer > 0 {
		m["first_offline_answer_seconds"] = c.firstAnswer.Seconds()
	}
	if c.attempts.refused+c.attempts.allowed > 0 {
		m["refused_attempts"], m["allowed_attempts"] = float64(c.attempts.refused), float64(c.attempts.allowed)
		m["wrong_attempts"] = float64(c.attempts.wrong)
	}
	if rate := float64(c.s.Topology.Pool.Uplink.Down) / 8; rate > 0 && !c.healed.IsZero() {
		m["return_peak_ratio"] = c.peak(c.healed) / rate
	}
}

// peak is the most that came down the link in one second since a time.
func (c *column) peak(since time.Time) (most float64) {
	sums := map[int]float64{}
	for _, x := range c.downSeries {
		if !x.At.Before(since) {
			i := int(x.At.Sub(since) / time.Second)
			sums[i] += float64(x.Bytes)
			most = max(most, sums[i])
		}
	}
	return most
}
