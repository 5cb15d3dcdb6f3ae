package autonomy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// Run runs a scenario with autonomy: the stock column, then Weir's. The result is worth reporting even with an error: it then tells how
// far the run came.
func Run(ctx context.Context, s *scenario.Scenario, o runner.Options) (res report.Result, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	started, metrics := time.Now(), report.Values{}
	res = report.Result{
		Description: s.Description, Repeat: o.Repeat, Runtime: o.Runtime.Name(), Started: started, Revision: o.Revision,
		Outcome:  report.Outcome{Scenario: s.Name, Seed: s.Seed, Metrics: metrics},
		Versions: map[string]string{"kube-apiserver": cloud.Version, "Go": goruntime.Version()}, Machine: runner.Machine(),
		Topology: []report.Fact{
			{Name: "nodes", Value: float64(s.Topology.Pool.Nodes)}, {Name: "pods per node", Value: float64(s.Autonomy.PodsPerNode)},
			{Name: "round trip", Value: s.Topology.Pool.Uplink.RTT.Seconds(), Unit: report.UnitSeconds},
		},
		UplinkBitsPerSecond: float64(s.Topology.Pool.Uplink.Down),
	}
	defer func() {
		if err != nil {
			res.Error = err.Error()
		}
		res.Seconds, res.Passed = time.Since(started).Seconds(), err == nil
		for _, e := range s.Expectations {
			x := e.Report(metrics)
			res.Expectations = append(res.Expectations, x)
			res.Passed = res.Passed && x.Passed
		}
	}()
	if err := runner.Suits(s, o.Runtime); err != nil {
		return res, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return res, err
	}
	w, err := timeline.Create(filepath.Join(o.Dir, "timeline.jsonl"), clock.RealClock{})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	modes := []runtime.Mode{runtime.Stock, s.Topology.Pool.Mode()}
	if !s.Restarts() { // there is nothing to compare with
		modes = modes[1:]
	}
	for _, mode := range modes {
		c := newColumn(s, o, w, mode)
		err := c.run(ctx)
		res.Bytes, res.Series, res.Marks = append(res.Bytes, c.bytes...), append(res.Series, c.series...), append(res.Marks, c.marks...)
		if err != nil {
			return res, fmt.Errorf("%s column: %w", c.way, err)
		}
		c.measure(metrics)
	}
	if stock, ok := metrics["pods_back_stock_seconds"]; ok {
		metrics["pods_back_later_seconds"] = max(metrics["pods_back_seconds"]-stock, 0)
	}
	return res, nil
}

// measure makes metrics of what came of a column.
func (c *column) measure(m report.Values) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.weir {
		m["pods_back_stock_seconds"] = c.back.Seconds()
		return
	}
	m["lost_writes"], m["doubled_writes"] = float64(c.lost), float64(c.recorder.doubled())
	m["deleted_left"], m["joined_nodes"] = float64(c.left), float64(c.joined)
	m["store_bytes"], m["disk_bytes_written"] = float64(c.storeBytes), float64(c.written())
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
