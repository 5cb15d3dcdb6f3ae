package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
)

// subcommand is one thing that weir does.
type subcommand struct {
	name  string // "scenario run"
	args  string // what follows, for the usage line
	about string
	run   func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

func subcommands() []subcommand {
	return []subcommand{
		{"scenario run", "FILE|DIR", "run a scenario, or all in a folder, and write reports", scenarioRun},
		{"scenario grid", "FILE", "run a scenario over links of several rates, paces of changes and faults, and write a table", scenarioGrid},
		{"report change", "", "measure what a change makes better or worse than its base, and report the worst first", reportChange},
		{"report judge", "FILE|DIR", "judge the figures of a stored report of a change anew, and write its files", reportJudge},
		{"report bands", "FILE|DIR…", "print by what share figures differ from themselves, from reports of changes that change nothing", reportBands},
		{"report history", "[FILE|DIR]", "add a line for a landed change to the history, and plot it", reportHistory},
		{"report baseline", "--reason REASON DIR…", "put the results of runs in the place of the committed baselines", reportBaseline},
		{"report compare", "A B", "lay two runs of one scenario side by side", compare},
		{"attack", "", "try to break pools, and report which attempts are refused", runAttacks},
		{"mutants", "", "plant bugs, one at a time, and report which are caught by the check that must catch them", plantMutants},
		{"conformance", "", "run Kubernetes' end-to-end specs straight and through hubs, and report where these differ", runConformance},
		{"tests", "-- ARGUMENTS OF GO TEST", "run Go tests, and tell afterwards what was skipped and what took long", runTests},
		{"pki table", "", "list the kinds of certificates: what stands in each, and who signs it", pkiTable},
		{"pki request", "", "print a request for a certificate", pkiRequest},
		{"pki check", "FILE…", "tell what certificates are, who vouches for them and when they end", pkiCheck},
		{"pki authority", "", "make the authority of a pool, by itself or below an existing one", pkiAuthority},
		{"pki files", "", "make all files of a pool from its authority", pkiFiles},
		{"pki rotate", "", "replace the authority of a pool by weir-manager, also one whose key is lost", pkiRotate},
		{"audit", "DIR...", "compare what hubs may do at kube-apiserver with what they did in runs of scenarios", runAudit},
		{"structure", "", "measure the code: how files use one another, sizes of packages and structs, flags of the binaries", printStructure},
		{"clean", "", "remove kind clusters, containers and networks that killed runs left behind", clean},
		{"metrics", "", "list the metrics that expectations may name", listMetrics},
		{"assets", "", "find kube-apiserver and kubectl, or build and cache them", assets},
	}
}

// Run is the command weir. It returns cli.ErrHelp after --help, and usage errors for cli.ExitCode.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintln(stdout, "weir", cli.Version())
		return nil
	}
	if len(args) == 0 || isHelp(args[0]) {
		help(stdout, subcommands())
		return nil
	}
	line := strings.Join(args, " ") + " "
	for _, c := range subcommands() {
		if strings.HasPrefix(line, c.name+" ") {
			return c.run(ctx, args[strings.Count(c.name, " ")+1:], stdout, stderr)
		}
	}
	meant := slices.DeleteFunc(subcommands(), func(c subcommand) bool { return !strings.HasPrefix(c.name, args[0]+" ") })
	switch {
	case len(meant) == 0:
		meant = subcommands()
	case len(args) > 1 && isHelp(args[1]):
		help(stdout, meant)
		return nil
	}
	var names []string
	for _, c := range meant {
		names = append(names, c.name)
	}
	return cli.Usage("command", strings.Join(args, " "), strings.Join(names, ", ")+"; see weir --help")
}

func isHelp(arg string) bool { return arg == "--help" || arg == "-h" || arg == "help" }

func help(w io.Writer, of []subcommand) {
	fmt.Fprint(w, "weir runs scenarios of edge pools against a real control plane and reports what crossed the link.\n\nUsage:\n")
	for _, c := range of {
		fmt.Fprintf(w, "  weir %-34s %s\n", c.name+" "+c.args, c.about)
	}
	fmt.Fprint(w, "  weir --version\n\nEach command has --help. Exit codes: 0 success, 1 failure (an expectation that did not hold, too), 2 wrong usage.\n")
}

// anyArgs stands for any number of arguments.
const anyArgs = -1

// parse reads the flags of a subcommand; want is how many arguments it takes.
func parse(fs *pflag.FlagSet, c string, args []string, want int, stdout io.Writer) error {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	switch err := fs.Parse(args); {
	case err == pflag.ErrHelp: //nolint:errorlint // pflag returns it bare
		fmt.Fprintf(stdout, "Usage:\n  weir %s\n\nFlags:\n%s", c, fs.FlagUsages())
		return cli.ErrHelp
	case err != nil:
		return cli.Usage("flags", strings.Join(args, " "), err.Error())
	case fs.NArg() != want && want != anyArgs:
		return cli.Usage("arguments", strings.Join(fs.Args(), " "), "weir "+c)
	}
	return nil
}
