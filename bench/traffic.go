package bench

import (
	"context"
	"fmt"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
)

// trafficScenario is the scenario whose pool, clients and changes the bytes are measured with.
const trafficScenario = "pool-cache"

// Traffic measures what crosses the uplink of a pool without Weir, with a hub on each node, and with hubs and a
// coordinator, for the same clients and changes. The reference is one protobuf informer per resource, alone over an
// equal link in the same run.
func Traffic(ctx context.Context, t Testbed) ([]Figure, error) {
	var trials []trial
	for i := range t.Rounds {
		for _, coordinators := range []int{1, 0} {
			s, err := t.load(trafficScenario)
			if err != nil {
				return nil, err
			}
			s.Topology.Pool.Coordinators, s.Expectations = coordinators, nil
			s.Compare = []string{report.WayReference, report.WayStock}
			name := "hub-with-pool"
			if coordinators == 0 {
				name, s.Compare = "hub-without-pool", s.Compare[:1]
			}
			s.Seed += int64(i) // other objects, and other moments of resumes
			trials = append(trials, trial{fmt.Sprintf("%s-%d", name, i+1), s})
		}
	}
	results, err := t.run(ctx, trials)
	if err != nil {
		return nil, err
	}
	return t.traffic(results)
}

// ablation is one way to bring the cloud's objects to the clients of a pool.
type ablation struct {
	name, way string
	every     int // its runs are every second of the results, from this one
}

// traffic makes the figures of runs with and without a pool, in turn.
func (t Testbed) traffic(results []report.Result) ([]Figure, error) {
	var figures []Figure
	sum := func(r report.Result, way, class string) float64 {
		return float64(r.Bytes.Sum(report.ByteRow{Way: way, Class: class}))
	}
	ways := []ablation{
		{"stock", report.WayStock, 0}, {"hub without a pool", report.WayWeir, 1}, {"hub with a pool", report.WayWeir, 0},
	}
	for _, a := range ways {
		all := Figure{
			Name: "all bytes across the uplink, " + a.name, Unit: "MB",
			Detail: "both ways, from the start of the pool until all changes were delivered",
		}
		ratio := Figure{Name: all.Name + " ÷ reference", Unit: "ratio"}
		for i := a.every; i < len(results); i += 2 {
			n := sum(results[i], a.way, "")
			all.Samples, ratio.Samples = append(all.Samples, n/mb),
				append(ratio.Samples, n/sum(results[i], report.WayReference, ""))
		}
		var err error
		switch a.name {
		case "stock":
			ratio.Limit, err = t.target(trafficScenario, "stock_bytes_ratio")
		case "hub with a pool":
			ratio.Limit, err = t.target(trafficScenario, "total_bytes_ratio")
		}
		if err != nil {
			return nil, err
		}
		figures = append(figures, all, ratio)
	}
	pool := Figure{Name: "bytes of the pool's cache, hub with a pool ÷ reference", Unit: "ratio"}
	var err error
	if pool.Limit, err = t.target(trafficScenario, "pool_bytes_ratio"); err != nil {
		return nil, err
	}
	saved := Figure{Name: "all bytes, hub with a pool ÷ stock", Unit: "ratio"}
	for i := 0; i < len(results); i += 2 {
		r := results[i]
		pool.Samples = append(pool.Samples,
			sum(r, report.WayWeir, runtime.ClassPool)/sum(r, report.WayReference, runtime.ClassPool))
		saved.Samples = append(saved.Samples, sum(r, report.WayWeir, "")/sum(r, report.WayStock, ""))
	}
	return append(figures, pool, saved), nil
}
