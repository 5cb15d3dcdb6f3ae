package command

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/operator"
)

// own are the commands of the testbed.
func own() []cli.Command {
	return []cli.Command{
		{
			Name: "scenario run", Args: "FILE|DIR", About: "run a scenario, or all in a folder, and write reports",
			Run: scenarioRun,
		},
		{
			Name: "scenario grid", Args: "FILE",
			About: "run a scenario over links of several rates, paces of changes and faults, and write a table",
			Run:   scenarioGrid,
		},
		{
			Name: "report change", Args: "",
			About: "measure what a change makes better or worse than its base, and report the worst first", Run: reportChange,
		},
		{
			Name: "report judge", Args: "FILE|DIR",
			About: "judge the figures of a stored report of a change again, and write its files", Run: reportJudge,
		},
		{
			Name: "report bands", Args: "FILE|DIR…",
			About: "print by what share figures differ from themselves, from reports of changes that change nothing",
			Run:   reportBands,
		},
		{
			Name: "report history", Args: "[FILE|DIR]", About: "add a line for a landed change to the history, and plot it",
			Run: reportHistory,
		},
		{
			Name: "report baseline", Args: "--reason REASON DIR…",
			About: "put the results of runs in the place of the committed baselines", Run: reportBaseline,
		},
		{
			Name: "report compare", Args: "A B", About: "lay two runs of one scenario, or of weir bench, side by side",
			Run: compare,
		},
		{
			Name: bench.Command, Args: "",
			About: "measure what Weir is for and what it costs, or another hub beside it (--peer), and hold it to its targets",
			Run:   runBench,
		},
		{Name: "attack", Args: "", About: "try to break pools, and report which attempts are refused", Run: runAttacks},
		{
			Name: "mutants", Args: "",
			About: "plant bugs, one at a time, and report which are caught by the check that must catch them", Run: plantMutants,
		},
		{
			Name: "conformance", Args: "",
			About: "run Kubernetes' end-to-end specs straight and through hubs, and report where these differ",
			Run:   runConformance,
		},
		{
			Name: "tests", Args: "-- ARGUMENTS OF GO TEST",
			About: "run Go tests, and tell afterwards what was skipped and what took long", Run: runTests,
		},
		{
			Name: "audit", Args: "DIR...",
			About: "compare what hubs may do at kube-apiserver with what they did in runs of scenarios", Run: runAudit,
		},
		{
			Name: "structure", Args: "",
			About: "measure the code: how files use one another, sizes of packages and structs, flags of the binaries",
			Run:   printStructure,
		},
		{
			Name: "clean", Args: "", About: "remove kind clusters, containers and networks that killed runs left behind",
			Run: clean,
		},
		{Name: "metrics", Args: "", About: "list the metrics that expectations may name", Run: listMetrics},
		{Name: "assets", Args: "", About: "find kube-apiserver and kubectl, or build and cache them", Run: assets},
	}
}

// Run is the command weir of the one that works on Weir: what the testbed does, and what operators have. It returns
// cli.ErrHelp after --help, and usage errors for cli.ExitCode.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Commands{
		Program: "weir", About: "runs scenarios of edge pools against a real control plane and reports what crossed the " +
			"link, and does what operators do.",
		Failure: " (an expectation that did not hold, too)", All: append(own(), operator.Commands("weir").All...),
	}.Run(ctx, args, stdout, stderr)
}

// parse reads the flags of a command; want is how many arguments it takes.
func parse(fs *pflag.FlagSet, c string, args []string, want int, stdout io.Writer) error {
	return cli.ParseArgs(fs, "weir "+c, args, want, stdout)
}
