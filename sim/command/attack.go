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

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/attack"
	"github.com/weir-edge/weir/sim/parts"
)

// errAttacked is the end of a run whose report tells which attacks succeeded.
var errAttacked = errors.New("not every attack was refused")

func runAttacks(fs *pflag.FlagSet) commands.Run {
	out := fs.String("out", "reports/out/attack", "folder of the report, and of the logs of all parts")
	only := fs.StringSlice("only", nil,
		"numbers of attacks, as in 9,14b,55; 9 names its variants (9b) too, 14b that one alone")
	list := fs.Bool("list", false, "list the attacks and end")
	quick := fs.Bool("quick", false, "five minutes of it, without those that need time, memory or many requests")
	parallel := fs.Int("parallel", 3, "pools that are attacked at once, 1 to 16")
	binaries := fs.String("binaries", "",
		"folder of weir-hub, weir-coordinator, weir-manager and weir-gate to attack, of another revision; empty: those "+
			"of this source tree")
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		if err := checkParallel(*parallel); err != nil {
			return err
		}
		attacks, err := attack.Select(attack.All(), *only, *quick)
		if err != nil {
			return err
		}
		if *list {
			for _, a := range attacks {
				fmt.Fprintf(stdout, "%-4s %s  %s: %s. %s.\n", a.Number, a.Position, a.Goal, a.Sent, a.Expected)
			}
			return nil
		}
		began := time.Now()
		say := saying(stderr, began)
		o := attack.Options{
			LogDir: filepath.Join(*out, "logs"), Parallel: *parallel, Progress: say, Binaries: parts.Binaries{},
		}
		if err := dropLogs(o.LogDir); err != nil {
			return err
		}
		if *binaries != "" {
			for _, name := range []string{
				parts.HubCommand, parts.CoordinatorCommand, parts.ManagerCommand, parts.GateCommand,
			} {
				o.Binaries[name] = filepath.Join(*binaries, name)
			}
		}
		rows, err := attack.Run(ctx, attacks, o)
		if len(rows) == 0 {
			return err
		}
		result := attack.NewResult(rows, revision(ctx), began)
		repeat := strings.TrimSpace("bin/weir attack " + strings.Join(args, " "))
		if werr := result.Write(*out, repeat); werr != nil {
			return errors.Join(err, werr)
		}
		say("report: " + filepath.Join(*out, "summary.md") + " and index.html")
		return judged(*out, err, result.Passed, errAttacked)
	}
}
