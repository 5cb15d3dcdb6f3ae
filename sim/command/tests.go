package command

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/testlog"
)

// runTests is go test that remembers what was skipped and how long it took.
func runTests(fs *pflag.FlagSet) commands.Run {
	const usage = "tests --name NAME -- ARGUMENTS OF GO TEST"
	fs.SetInterspersed(false)
	name := fs.String("name", "", "of the log of this run")
	out := fs.String("out", "reports/out/tests", "folder of the logs")
	summary := fs.Bool("summary", false,
		"run nothing: tell of all logs which packages were slow, and what was skipped and why; fails if a test did "+
			"not say why")
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		dir, err := filepath.Abs(*out)
		switch {
		case err != nil:
			return err
		case *summary && len(args) == 0 && *name == "":
			return testlog.Summary(dir, stdout)
		case *summary:
			return cli.Usage("arguments", strings.Join(args, " "), "weir tests --summary, or weir "+usage)
		case *name == "" || strings.ContainsAny(*name, "/. "):
			return cli.Usage("--name", *name, "a word, as unit")
		}
		return testlog.Run(ctx, *name, dir, args, stdout)
	}
}
