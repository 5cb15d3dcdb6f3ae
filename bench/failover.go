package bench

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/scenario"
)

//go:embed failover.yaml
var failoverScenario []byte

// spare is what a marker may take beyond grace period and spread: a leader change is allowed that much.
const spare = 3

// loss is one fault of failover.yaml.
type loss struct {
	name string
	// grace is judged where nobody is to read for the pool at once: by a limit, or, if moves is false, by that nobody does
	// at all.
	moves bool
	// recovered is when service is normal, and since when that is told.
	since     string
	recovered func(report.Fault) float64
	scenario  string // and its metric: the target of recovered; empty: for comparison
	metric    string
}

// losses are in the order of the faults of failover.yaml.
func losses() []loss {
	const fromLoss, fromReturn = "from the loss", "from its return"
	reached := func(f report.Fault) float64 { return f.Reached }
	recovered := func(f report.Fault) float64 { return f.Recovered }
	return []loss{
		{"leader killed", true, fromLoss, reached, "leader-kill", "failover_seconds_p99"},
		{"leader frozen", true, fromLoss, reached, "leader-freeze", "failover_seconds_p99"},
		{"leader's uplink cut", true, fromLoss, reached, "leader-cloud-cut", "failover_seconds_p99"},
		{"coordinator killed, back after 8 s", false, fromReturn, recovered, "coordinator-kill", "recovery_seconds_max"},
		{"coordinator restarted", false, fromReturn, recovered, "coordinator-restart", "recovery_seconds_max"},
		{"hub of a follower restarted", false, fromLoss, func(f report.Fault) float64 { return f.Lasted + f.Fresh }, "", ""},
		{"API server of the cloud restarted", true, fromReturn, recovered, "", ""},
		{coordinatorLost, true, fromLoss, reached, "", ""},
	}
}

const coordinatorLost = "coordinator lost for good"

// Failover measures, for each kind of loss, how long nobody goes to the cloud to read for the pool, and how long it
// takes until service is normal.
func Failover(ctx context.Context, t Testbed) ([]Figure, error) {
	var trials []trial
	for i := range t.Rounds {
		s, err := scenario.Parse("failover"+scenario.Extension, failoverScenario)
		if err != nil {
			return nil, err
		}
		s.Expectations = nil
		s.Seed += int64(i)
		trials = append(trials, trial{fmt.Sprintf("failover-%d", i+1), s})
	}
	results, err := t.run(ctx, trials)
	if err != nil {
		return nil, err
	}
	return t.failover(results)
}

func (t Testbed) failover(results []report.Result) ([]Figure, error) {
	kinds := losses()
	var figures []Figure
	for i, kind := range kinds {
		grace := Figure{
			Name: "grace, " + kind.name, Unit: "s",
			Detail: "from the loss until class pool's first byte to the cloud over a new connection",
		}
		moved := Figure{
			Name: "new connections of class pool, " + kind.name, Unit: "rounds",
			Detail: "rounds in which there was one, of all: the pool's cache serves on",
		}
		normal := Figure{Name: fmt.Sprintf("recovery, %s: %s until service is normal", kind.name, kind.since), Unit: "s"}
		connected := 0.0
		for _, r := range results {
			if len(r.Faults) != len(kinds) {
				return nil, fmt.Errorf("%d losses were measured, want %d", len(r.Faults), len(kinds))
			}
			f := slices.SortedFunc(slices.Values(r.Faults), func(a, b report.Fault) int { return cmp.Compare(a.At, b.At) })[i]
			if f.Grace > 0 {
				grace.Samples = append(grace.Samples, f.Grace)
				connected++
			}
			normal.Samples = append(normal.Samples, kind.recovered(f))
		}
		moved.Samples = []float64{connected}
		var err error
		if kind.scenario != "" {
			if normal.Limit, err = t.target(kind.scenario, kind.metric); err != nil {
				return nil, err
			}
		}
		switch {
		case !kind.moves:
			moved.Limit, err = t.target("coordinator-kill", "new_pool_connections")
			figures = append(figures, moved, normal)
		case kind.name == coordinatorLost:
			if grace.Limit, err = t.target("coordinator-lost", "jitter_first_seconds"); err == nil {
				normal.Limit = AtMost(2*grace.Limit.Value+spare,
					"the grace period, its spread of the same length, and what a leader change may take")
			}
			figures = append(figures, grace, normal)
		default:
			figures = append(figures, grace, normal)
		}
		if err != nil {
			return nil, err
		}
	}
	return figures, nil
}
