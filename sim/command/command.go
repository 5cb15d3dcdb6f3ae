package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/operator"
)

// own are the commands of the testbed.
func own() []*cobra.Command {
	return []*cobra.Command{
		commands.Group("scenario", "run scenarios",
			commands.New("run FILE|DIR", "run a scenario, or all in a folder, and write reports", 1, scenarioRun),
			commands.New("grid FILE",
				"run a scenario over links of several rates, paces of changes and faults, and write a table", 1, scenarioGrid),
		),
		commands.Group("report", "compare and keep what was measured",
			commands.New("change", "measure what a change makes better or worse than its base, and report the worst first", 0,
				reportChange),
			commands.New("judge FILE|DIR", "judge the figures of a stored report of a change again, and write its files", 1,
				reportJudge),
			commands.New("bands FILE|DIR…",
				"print by what share figures differ from themselves, from reports of changes that change nothing", commands.Any,
				reportBands),
			commands.New("history [FILE|DIR]", "add a line for a landed change to the history, and plot it", commands.Any,
				reportHistory),
			commands.New("baseline --reason REASON DIR…", "put the results of runs in the place of the committed baselines",
				commands.Any, reportBaseline),
			commands.New("compare A B", "lay two runs of one scenario, or of weir bench, side by side", 2, compare),
		),
		commands.New(bench.Command,
			"measure what Weir is for and what it costs, or another hub beside it (--peer), and hold it to its targets", 0,
			runBench),
		commands.New("attack", "try to break pools, and report which attempts are refused", 0, runAttacks),
		commands.New("mutants", "plant bugs, one at a time, and report which are caught by the check that must catch them", 0,
			plantMutants),
		commands.New("conformance",
			"run Kubernetes' end-to-end specs straight and through hubs, and report where these differ", 0, runConformance),
		commands.New("tests -- ARGUMENTS OF GO TEST",
			"run Go tests, and tell afterwards what was skipped and what took long", commands.Any, runTests),
		commands.New("audit DIR...", "compare what hubs may do at kube-apiserver with what they did in runs of scenarios",
			commands.Any, runAudit),
		commands.New("structure",
			"measure the code: how files use one another, sizes of packages and structs, flags of the binaries", 0,
			printStructure),
		commands.Group("dev", "try what is in this checkout",
			commands.New("load",
				"build the images of this checkout, load them into a kind cluster, and print how to install them", 0, devLoad),
		),
		commands.New("clean", "remove kind clusters, containers and networks that killed runs left behind", 0, clean),
		commands.New("metrics", "list the metrics that expectations may name", 0, listMetrics),
		commands.New("assets", "find kube-apiserver and kubectl, or build and cache them", 0, assets),
	}
}

// Run is the command weir of the one that works on Weir: what the testbed does, and what operators have. Its errors are
// for cli.ExitCode.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return commands.Program{
		Name: "weir", About: "runs scenarios of edge pools against a real control plane and reports what crossed the " +
			"link, and does what operators do.",
		Failure: " (an expectation that did not hold, too)", All: append(own(), operator.Commands("weir").All...),
	}.Run(ctx, args, stdout, stderr)
}
