package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/report"
)

// baselineLog tells who changed a baseline, and why.
const baselineLog = "CHANGES.tsv"

// reportBaseline puts the results of runs in the place of the committed ones.
func reportBaseline(flags *pflag.FlagSet) commands.Run {
	dir := flags.String("dir", "reports/baseline", "folder of the baselines")
	reason := flags.String("reason", "", "why the baseline changes; it is kept beside it")
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		why := strings.Join(strings.Fields(*reason), " ")
		switch {
		case why == "":
			return cli.Usage("--reason", *reason, "a sentence that says why the baseline changes")
		case len(args) == 0:
			return cli.Usage("arguments", "", "folders of runs, as reports/out/pool-cache or reports/out/eviction")
		}
		var results []kept
		var failed []string
		for _, path := range args {
			runs, err := runsOf(path)
			if err != nil {
				return err
			}
			for _, r := range runs {
				if r.failed == nil {
					results = append(results, r)
				} else {
					failed = append(failed, fmt.Sprintf("%s (%v)", r.name, r.failed))
				}
			}
		}
		if err := os.MkdirAll(*dir, 0o755); err != nil {
			return fmt.Errorf("make the folder of baselines: %w", err)
		}
		for _, r := range results {
			var data bytes.Buffer
			enc := json.NewEncoder(&data)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", " ")
			if err := enc.Encode(r.small); err != nil {
				return err
			}
			name := filepath.Join(*dir, r.name+".json")
			if err := os.WriteFile(name, data.Bytes(), 0o644); err != nil {
				return err
			}
			line := strings.Join([]string{r.began.UTC().Format("2006-01-02"), r.revision, r.name, why}, "\t") + "\n"
			log, err := os.OpenFile(filepath.Join(*dir, baselineLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			_, err = log.WriteString(line)
			if err := errors.Join(err, log.Close()); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s: %s\n", name, why)
		}
		if len(failed) > 0 {
			return fmt.Errorf("what fails is no baseline: %s", strings.Join(failed, "; "))
		}
		return nil
	}
}

// kept is a run of a scenario or of benchmarks, as a baseline keeps it.
type kept struct {
	name, revision string
	began          time.Time
	failed         error
	small          any
}

// load reads the run in a folder, or its result file.
func load(path string) (kept, error) {
	r, err := report.Load(path)
	if errors.Is(err, report.ErrNoScenario) {
		b, err := bench.Load(path)
		if err != nil {
			return kept{}, fmt.Errorf("%w, and %w", report.ErrNoScenario, err)
		}
		// which says itself what missed its target.
		return kept{name: benchmarks, revision: b.Revision, began: b.Began, small: b}, nil
	}
	if err != nil {
		return kept{}, err
	}
	k := kept{name: r.Scenario, revision: r.Revision, began: r.Started, small: r.Small()}
	if !r.Passed {
		k.failed = errors.New("the scenario did not pass")
	}
	return k, nil
}

// benchmarks is what the baseline of weir bench is called.
const benchmarks = "bench"

// runsOf are the runs of a folder: its own, or else those of the folders in it that have one.
func runsOf(path string) (runs []kept, err error) {
	r, err := load(path)
	switch {
	case err == nil:
		return []kept{r}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, wrongRun(path, err)
	}
	files, err := filepath.Glob(filepath.Join(path, "*", "result.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		r, err := load(file)
		switch {
		case err == nil:
			runs = append(runs, r)
		case !errors.Is(err, report.ErrNoScenario): // others write a result.json as well
			return nil, wrongRun(file, err)
		}
	}
	if len(runs) == 0 {
		return nil, cli.Usage("argument", path, aRun)
	}
	return runs, nil
}

const aRun = "the folder of a run, which has a result.json, or a folder of such folders"

func wrongRun(path string, why error) error {
	return cli.Usage("argument", path, aRun+": "+why.Error())
}
