package eviction

import (
	"context"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// Run runs a scenario with eviction: the stock column, then Weir's. The result is worth reporting even with an error:
// it then tells how far the run came.
func Run(ctx context.Context, s *scenario.Scenario, o runner.Options) (report.Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return runner.InColumns(s, o, facts(s), func(res *report.Result, w *timeline.Writer) error {
		return columns(ctx, s, o, res, w)
	})
}

// columns runs both and judges them.
func columns(ctx context.Context, s *scenario.Scenario, o runner.Options, res *report.Result,
	w *timeline.Writer) error {
	var verdicts [2]Verdict
	for i, c := range []*column{
		newColumn(s, o, w, report.WayStock, runtime.Stock), newColumn(s, o, w, report.WayWeir, runtime.Weir),
	} {
		err := c.run(ctx)
		c.Into(res)
		if err != nil {
			return err
		}
		verdicts[i] = Judge(&c.history)
		res.Causes = append(res.Causes, c.causes...)
		res.Replacing = append(res.Replacing, c.replacing...)
		c.measure(res.Metrics, verdicts[i])
		for _, d := range verdicts[i].Details {
			if c.mode == runtime.Weir { // that stock Kubernetes does wrong is what the scenario is about
				o.Progress("wrong: " + d)
			}
			w.Emit(timeline.Event{Lane: timeline.Workload, Way: c.Way, Name: "judged", Strings: map[string]string{"detail": d}})
		}
	}
	if stock, weir := verdicts[0].DeadMoved, verdicts[1].DeadMoved; stock > 0 && weir > 0 {
		res.Metrics["eviction_later_seconds_max"] = max(weir-stock, 0).Seconds()
	}
	return nil
}

func newColumn(s *scenario.Scenario, o runner.Options, w *timeline.Writer, way string, mode runtime.Mode) *column {
	c := &column{
		Column: runner.Column{Options: o, Way: way, Pool: s.Topology.Pool.Name, Time: w, Every: lookEvery}, s: s, mode: mode,
		about: s.Study.(*scenario.Eviction),
	}
	c.history = History{
		Timers: layout.Timers(c.about.Timers), Nodes: s.Topology.Pool.NodeNames(),
		Dead: map[string][]Span{}, CutOff: map[string][]Span{}, Policy: []PolicyChange{{Policy: c.about.Policy}},
	}
	if c.about.Joins {
		last := len(c.history.Nodes) - 1
		c.joins, c.history.Nodes = c.history.Nodes[last], c.history.Nodes[:last]
	}
	return c
}

// measure makes metrics of what came of a column.
func (c *column) measure(m report.Values, v Verdict) {
	calls, failed := 0, 0
	for _, x := range c.callers {
		n, f := x.count()
		calls, failed = calls+n, failed+f
	}
	if c.mode != runtime.Weir {
		m["stock_evictions"], m["stock_not_ready"] = float64(v.Evicted), float64(v.NotReady)
		m["stock_quiet_received_bytes_per_second"], m["stock_quiet_bytes_per_node_second"] = c.received, c.quietly
		m["stock_quiet_connections_per_node"] = c.connected
		if c.about.Rollouts > 0 {
			m["stock_update_bytes"] = c.updated
			m["stock_shareable_bytes"] = c.shared
		}
		if c.joins != "" {
			m["stock_join_bytes"] = c.joined
		}
		if c.about.Calls {
			m["stock_failed_calls"] = float64(failed)
		}
		return
	}
	m["wrong_evictions"], m["missed_evictions"] = float64(v.Wrong), float64(v.Missed)
	m["not_ready_while_delegated"], m["late_heartbeats"] = float64(v.Unjust), float64(v.Late)
	m["store_reads"], m["kept_heartbeats"] = c.reads, c.kept
	m["marks_missing"], m["marks_left"] = float64(v.Unmarked), float64(v.MarkedLeft)
	if c.about.Calls {
		m["calls"], m["failed_calls"] = float64(calls), float64(failed)
	}
	m["heartbeat_bytes_per_second"], m["quiet_received_bytes_per_second"] = c.direct, c.received
	m["heartbeat_bytes_per_minute"] = c.direct * 60
	m["quiet_bytes_per_node_second"] = c.quietly
	m["quiet_bytes_ratio"] = c.quietly / max(m["stock_quiet_bytes_per_node_second"], 1)
	m["quiet_connections_per_node"], m["hub_rss_anon_bytes_max"] = c.connected, float64(c.heaviest)
	if c.about.Rollouts > 0 {
		m["update_bytes"] = c.updated
		m["node_bytes_ratio"] = c.updated / max(m["stock_update_bytes"], 1)
		if saved := m["stock_shareable_bytes"] - c.shared; saved > 0 {
			m["saved_bytes"], m["saved_bytes_told_ratio"] = saved, c.said/saved
		}
	}
	if c.joins != "" {
		m["join_bytes"] = c.joined
		m["join_bytes_ratio"] = c.joined / max(m["stock_join_bytes"], 1)
	}
	if v.Detected > 0 {
		m["detect_seconds_max"] = v.Detected.Seconds()
		m["delegation_bytes_per_second"] = c.delegated
	}
}

func facts(s *scenario.Scenario) []report.Fact {
	about := s.Study.(*scenario.Eviction)
	t := layout.Timers(about.Timers)
	return []report.Fact{
		{
			Name: "nodes", Value: float64(s.Topology.Pool.Nodes),
		}, {Name: "healthy nodes beside", Value: float64(s.Topology.Beside.Nodes)},
		{Name: "pods per node", Value: float64(about.PodsPerNode)},
		{Name: "round trip", Value: s.Topology.Pool.Uplink.RTT.Seconds(), Unit: report.UnitSeconds},
		{Name: "node monitor grace period", Value: t.MonitorGrace.Seconds(), Unit: report.UnitSeconds},
		{Name: "toleration", Value: t.Toleration.Seconds(), Unit: report.UnitSeconds},
		{Name: "watched", Value: about.Watch.Seconds(), Unit: report.UnitSeconds},
	}
}

// delegation is the time in which some node of the pool was cut off and others were not, without its beginning.
func (h *History) delegation() (s Span) {
	for _, n := range h.Nodes {
		for _, x := range h.CutOff[n] {
			from, to := x.From.Add(h.Timers.MonitorGrace), h.until(x)
			if from.Before(to) && h.connected(x.From, to) && (s.From.IsZero() || to.Sub(from) > s.To.Sub(s.From)) {
				s = Span{From: from, To: to}
			}
		}
	}
	return s
}
