package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/install"
)

// again is how often --wait looks.
const again = 2 * time.Second

// errUnwell is the answer of weir check where there is an error.
var errUnwell = errors.New("something is not well")

// Command is weir check.
func Command() *cobra.Command {
	return commands.New("check", "look whether Weir is well, or whether it could be installed (--pre)", 0, checks)
}

func checks(fs *pflag.FlagSet) commands.Run {
	var o Options
	fs.BoolVar(&o.Pre, "pre", false, "look whether Weir could be installed")
	fs.StringVar(&o.Pool, "pool", "", "look at this pool and its nodes only")
	fs.StringVar(&o.Node, "node", "", "look at this node and its pool only")
	fs.BoolVar(&o.Here, "here", false,
		"look at this machine alone, which has joined a pool: no cluster is asked, and root is needed")
	root := fs.String("root", "/", "folder that is the root of the machine")
	_ = fs.MarkHidden("root")
	form := fs.StringP("output", "o", "table", "table, short (only what is not well) or json")
	wait := fs.Duration("wait", 0, "look again until nothing is wrong, for so long")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		switch {
		case !slices.Contains([]string{"table", "short", "json"}, *form):
			return cli.Usage("--output", *form, "table, short or json")
		case *wait < 0:
			return cli.Usage("--wait", *wait, "a time, as in 5m; 0 looks once")
		case o.Pre && (o.Pool != "" || o.Node != ""):
			return cli.Usage("--pre", true, "none of --pool and --node: there are no pools yet")
		case o.Here && (o.Pre || o.Pool != "" || o.Node != ""):
			return cli.Usage("--here", true, "none of --pre, --pool and --node: it is about this machine")
		}
		var err error
		if o.Machine, err = install.New(install.Config{Host: install.Host{Root: *root}}); err != nil {
			return err
		}
		var c *commands.Cluster
		if !o.Here {
			if c, err = flags.Cluster(); err != nil {
				return err
			}
		}
		r, err := until(ctx, c, o, *wait, stderr)
		if err != nil {
			return err
		}
		if err := r.Write(stdout, *form); err != nil {
			return err
		}
		if !r.Success {
			return errUnwell
		}
		return nil
	}
}

// until looks until there is no error, or the time is over.
func until(ctx context.Context, c *commands.Cluster, o Options, wait time.Duration, stderr io.Writer) (Report, error) {
	tick := time.NewTicker(again)
	defer tick.Stop()
	end := time.NewTimer(wait)
	defer end.Stop()
	for first := true; ; first = false {
		r, err := Run(ctx, c, o)
		if err != nil || r.Success || wait == 0 {
			return r, err
		}
		if first {
			fmt.Fprintf(stderr, "waiting for %v at most until nothing is wrong\n", wait)
		}
		select {
		case <-tick.C:
		case <-end.C:
			return r, nil
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
}
