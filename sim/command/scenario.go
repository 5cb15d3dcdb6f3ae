package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/autonomy"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/crowd"
	"github.com/weir-edge/weir/sim/eviction"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/pulls"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// errFailed is the end of a run whose report tells why.
var errFailed = errors.New("the scenario did not pass")

type scenarioFlags struct {
	out, output, runtime string
	kubernetes           string // version of the cloud; empty: the one that the environment asks for
	binaries             string // folder of Weir's commands; empty: they are built
	seed                 int64
	seeds                int
	noTimes              bool
}

func scenarioRun(fs *pflag.FlagSet) commands.Run {
	var f scenarioFlags
	fs.StringVar(&f.out, "out", "reports/out", "folder of the reports; each scenario gets a folder of its own in it")
	fs.StringVar(&f.output, "output", "text", "text or json: with json, standard output is one object")
	fs.StringVar(&f.runtime, "runtime", "local",
		"local: real processes on this machine; kind: real kubelets, needs a Docker engine (kind/README.md)")
	fs.StringVar(&f.kubernetes, "kubernetes", "", kubernetesHelp()+"; the kind runtime has that of its node image")
	fs.Int64Var(&f.seed, "seed", 0, "instead of the seed in the file")
	fs.IntVar(&f.seeds, "seeds", 1,
		"run one scenario with so many seeds, the first and those that follow it, 1 to 1000; a table of all goes to --out")
	fs.StringVar(&f.binaries, "binaries", "", binariesHelp)
	fs.BoolVar(&f.noTimes, "no-time-limits", false,
		"leave out what is expected of seconds, and of new connections, which follow from them: for machines that are shared")
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		if f.output != "text" && f.output != "json" {
			return cli.Usage("--output", f.output, "text or json")
		}
		k, err := cloud.Choose(f.kubernetes)
		if err != nil {
			return err
		}
		f.kubernetes = k.String()
		if _, err := f.newRuntime(""); err != nil {
			return err
		}
		scenarios, err := scenario.Load(args[0])
		if err != nil {
			return err
		}
		if (len(scenarios) > 1 || f.seeds > 1) && f.output == "json" {
			return cli.Usage("--output", f.output, "json takes one scenario file and one seed")
		}
		switch {
		case f.seeds < 1 || f.seeds > maxSeeds:
			return cli.Usage("--seeds", fmt.Sprint(f.seeds), fmt.Sprintf("1 to %d", maxSeeds))
		case f.seeds > 1 && len(scenarios) > 1:
			return cli.Usage("--seeds", fmt.Sprint(f.seeds), "one scenario file, not a folder of several")
		}
		var entries []report.Entry
		var failed error
		for _, s := range scenarios {
			if fs.Changed("seed") {
				s.Seed = f.seed
			}
			if f.noTimes {
				s.Expectations = slices.DeleteFunc(s.Expectations, scenario.Expectation.OfTime)
			}
			if f.seeds > 1 {
				return runSeeds(ctx, s, f, stdout, stderr)
			}
			res, err := runOne(ctx, s, f, stdout, stderr)
			entries = append(entries, report.Entry{Dir: s.Name, Result: res})
			failed = errors.Join(failed, err)
			if ctx.Err() != nil {
				return errors.Join(failed, errors.New("interrupted"))
			}
		}
		if len(entries) > 1 {
			if err := report.WriteIndex(f.out, entries); err != nil {
				return err
			}
			fmt.Fprintf(stderr, "index: %s\n", filepath.Join(f.out, "index.html"))
		}
		return failed
	}
}

func runOne(ctx context.Context, s *scenario.Scenario, f scenarioFlags, stdout, stderr io.Writer) (
	report.Result, error) {
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(stderr, "%6.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	dir := filepath.Join(f.out, s.Name)
	say("scenario %s, seed %d, report in %s", s.Name, s.Seed, dir)
	logs := filepath.Join(dir, "logs")
	if err := dropLogs(logs); err != nil {
		return report.Result{}, err
	}
	site, err := f.newRuntime(logs)
	if err != nil {
		return report.Result{}, err
	}
	repeat := fmt.Sprintf("bin/weir scenario run %s --seed %d", s.File, s.Seed)
	if f.other() {
		repeat += " --kubernetes " + f.kubernetes
	}
	if f.runtime != "local" {
		repeat += " --runtime " + f.runtime
	}
	run := runner.Run
	switch s.Study.(type) {
	case *scenario.Eviction:
		run = eviction.Run
	case *scenario.Crowd:
		run = crowd.Run
	case *scenario.Autonomy:
		run = autonomy.Run
	case *scenario.Images:
		run = pulls.Run
	}
	res, err := run(ctx, s, runner.Options{
		Runtime:  site,
		Dir:      dir,
		Repeat:   repeat,
		Revision: revision(ctx),
		Progress: func(m string) { say("%s", m) },
	})
	if err != nil {
		say("failed: %v", err)
		say("logs of all parts: %s", logs)
	}
	if werr := report.Write(dir, res); werr != nil {
		return res, errors.Join(err, werr)
	}
	for _, e := range res.Expectations {
		verdict := "ok    "
		if !e.Passed {
			verdict = "FAILED"
		}
		say("%s  %-28s got %s, want %s", verdict, e.Name, e.Got, e.Want)
	}
	say("report: %s and %s", filepath.Join(dir, "summary.md"), filepath.Join(dir, "report.html"))
	if f.output == "json" {
		if err := report.WriteOutcome(stdout, res); err != nil {
			return res, err
		}
	}
	switch {
	case err != nil:
		return res, fmt.Errorf("%s: %w", s.Name, err)
	case !res.Passed:
		return res, fmt.Errorf("%s: %w; see %s", s.Name, errFailed, filepath.Join(dir, "summary.md"))
	}
	return res, nil
}

const binariesHelp = "folder of weir-hub and weir-coordinator, for the local runtime; default: they are built from " +
	"the sources"

// newRuntime returns the runtime that the flags name.
func (f scenarioFlags) newRuntime(logs string) (runtime.Runtime, error) {
	switch f.runtime {
	case "local":
		built := parts.Binaries{}
		if f.binaries != "" {
			for _, command := range []string{"weir-hub", "weir-coordinator"} {
				built[command] = filepath.Join(f.binaries, command)
			}
		}
		return &runtime.Local{LogDir: logs, Binaries: built, Kubernetes: f.kubernetes}, nil
	case "kind":
		if f.other() {
			return nil,
				cli.Usage("--kubernetes", f.kubernetes, fmt.Sprintf("--runtime kind has %s, that of its node image", cloud.Version))
		}
		return &runtime.Kind{LogDir: logs}, nil
	}
	return nil, cli.Usage("--runtime", f.runtime, "local or kind")
}

// other reports whether the cloud is of another version than usual.
func (f scenarioFlags) other() bool { return f.kubernetes != "" && f.kubernetes != cloud.Version }

// dropLogs removes the logs of the run before: parts append to theirs when they are restarted.
func dropLogs(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("remove the log of the run before: %w", err)
		}
	}
	return nil
}

// revision of the source tree that the command runs in, "" outside of one.
func revision(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func compare(_ *pflag.FlagSet) commands.Run {
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		var scenarios [2]report.Result
		var benches [2]bench.Report
		of := 0 // of both, those that are of benchmarks
		for i := range scenarios {
			var err error
			scenarios[i], err = report.Load(args[i])
			if errors.Is(err, report.ErrNoScenario) {
				benches[i], err = bench.Load(args[i])
				of++
			}
			const want = "a report's folder or its result.json, of a scenario or of weir bench"
			if errors.Is(err, os.ErrNotExist) {
				return cli.Usage("argument", args[i], want)
			} else if err != nil {
				return cli.Usage("argument", args[i], want+": "+err.Error())
			}
		}
		switch of {
		case 0:
			text, err := report.Compare(scenarios[0], scenarios[1])
			if err != nil {
				return cli.Usage("arguments", strings.Join(args, " "), "two runs of one scenario: "+err.Error())
			}
			fmt.Fprint(stdout, text)
			return nil
		case 1:
			return cli.Usage("arguments", strings.Join(args, " "), "two runs of one scenario, or two of weir bench")
		}
		fmt.Fprint(stdout, bench.Compare(benches[0], benches[1]))
		return nil
	}
}

func listMetrics(_ *pflag.FlagSet) commands.Run {
	return func(_ context.Context, _ []string, stdout, _ io.Writer) error {
		for _, m := range report.Metrics() {
			fmt.Fprintf(stdout, "%-28s %s\n", m.Name, m.Doc)
		}
		return nil
	}
}
