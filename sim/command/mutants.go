package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/mutant"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// errSurvived is the end of a run whose report tells which planted bugs were not caught.
var errSurvived = errors.New("not every planted bug was caught")

func plantMutants(fs *pflag.FlagSet) commands.Run {
	out := fs.String("out", "reports/out/mutants", "folder of the report")
	only := fs.StringSlice("only", nil, "names of mutants")
	areas := fs.StringSlice("area", nil, "areas, as in relay,fence: files of sim/mutant/list")
	list := fs.Bool("list", false, "list the mutants and end")
	parallel := fs.Int("parallel", 2, "mutants that are tested at once, 1 to 16; those that must be alone come last")
	resume := fs.Bool("resume", false,
		"go on with the run of which --out has the report: what was caught there is tried again only if its check is made "+
			"of other sources now")
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		if err := checkParallel(*parallel); err != nil {
			return err
		}
		all, err := mutant.All()
		if err != nil {
			return err
		}
		ms, err := mutant.Select(all, *only, *areas)
		if err != nil {
			return cli.Usage("--only or --area", strings.Join(append(*only, *areas...), ","), err.Error()+"; --list lists them")
		}
		if *list {
			for _, m := range ms {
				fmt.Fprintf(stdout, "%-12s %-44s %s (%s)\n", m.Area, m.Name, m.Why, m.Check)
			}
			return nil
		}
		root, err := gobuild.Root("")
		if err != nil {
			return err
		}
		began := time.Now()
		say := saying(stderr, began)
		of := revision(ctx)
		var before mutant.Result
		if *resume {
			if before, err = mutant.Resume(*out); err != nil {
				return err
			}
		}
		load := before.Load
		var result mutant.Result
		var unwritten error
		write := func(rows []mutant.Row) {
			load.See()
			result = mutant.NewResult(rows, of, began.Add(-before.Took))
			result.Load = load
			unwritten = result.Write(*out, strings.TrimSpace("bin/weir mutants "+strings.Join(args, " ")))
		}
		rows, err := mutant.Run(ctx, ms, mutant.Options{
			Root: root, Parallel: *parallel, Before: before.Rows, Progress: say, Row: write,
		})
		if len(rows) == 0 {
			return err
		}
		if write(rows); unwritten != nil {
			return errors.Join(err, unwritten)
		}
		say("report: " + filepath.Join(*out, "summary.md") + " and index.html")
		if err != nil {
			err = fmt.Errorf("interrupted: the report says what was not attempted: %w", err)
		}
		return judged(*out, err, result.Passed, errSurvived)
	}
}
