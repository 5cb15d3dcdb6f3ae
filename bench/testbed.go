package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// Testbed says how the parts that run whole pools do so.
type Testbed struct {
	Scenarios string // folder of scenario files, whose expectations are targets here
	Rounds    int    // of each
	Parallel  int    // rounds at once: they wait most of the time, and count bytes and seconds
	Out       string // folder for the report of each run
	Progress  func(string)
}

func (t Testbed) validate() error {
	switch {
	case t.Rounds < 1:
		return cli.Usage("--pool-rounds", t.Rounds, "at least 1")
	case t.Parallel < 1 || t.Parallel > 8:
		return cli.Usage("--parallel", t.Parallel, "1 to 8")
	}
	if _, err := t.load(trafficScenario); err != nil {
		return cli.Usage("--scenarios", t.Scenarios, "a folder of scenario files: "+err.Error())
	}
	return nil
}

// load reads a scenario file.
func (t Testbed) load(name string) (*scenario.Scenario, error) {
	path := filepath.Join(t.Scenarios, name+scenario.Extension)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return scenario.Parse(path, data)
}

// target is what a scenario expects of a metric.
func (t Testbed) target(name, metric string) (*Limit, error) {
	s, err := t.load(name)
	if err != nil {
		return nil, err
	}
	for _, e := range s.Expectations {
		source := fmt.Sprintf("scenarios/%s.yaml: %s", name, e)
		switch {
		case e.Metric != metric:
		case e.Op == "<=" || e.Op == "==" && e.Limit == 0: // nothing that is counted is below 0
			return AtMost(e.Limit, source), nil
		case e.Op == ">=":
			return AtLeast(e.Limit, source), nil
		}
	}
	return nil, fmt.Errorf("scenarios/%s.yaml expects nothing of %s", name, metric)
}

// trial is one run of a scenario.
type trial struct {
	name     string
	scenario *scenario.Scenario
}

// run runs trials, some at once, and returns their results in the order of the trials. Whether expectations hold is not
// asked.
func (t Testbed) run(ctx context.Context, trials []trial) ([]report.Result, error) {
	results := make([]report.Result, len(trials))
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(t.Parallel)
	for i, one := range trials {
		g.Go(func() error {
			dir := filepath.Join(t.Out, one.name)
			res, err := runner.Run(ctx, one.scenario, runner.Options{
				Runtime: &runtime.Local{LogDir: filepath.Join(dir, "logs")}, Dir: dir,
				Progress: func(m string) {
					mu.Lock()
					defer mu.Unlock()
					t.Progress(one.name + ": " + m)
				},
			})
			if err != nil {
				return fmt.Errorf("%s: %w; logs in %s", one.name, err, dir)
			}
			results[i] = res
			return report.Write(dir, res)
		})
	}
	return results, g.Wait()
}
