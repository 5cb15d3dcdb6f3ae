package operator

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
)

// statusCommand is weir status.
func statusCommand() *cobra.Command {
	return commands.New("status", "show pools and their nodes", 0, statuses)
}

func statuses(fs *pflag.FlagSet) commands.Run {
	form := fs.StringP("output", "o", "table", "table, wide (with nodes), json or yaml")
	pool := fs.String("pool", "", "show this pool only")
	watch := fs.Bool("watch", false, "show it again every --interval")
	interval := fs.Duration("interval", 2*time.Second, "for --watch, at least 1s")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		switch {
		case !slices.Contains([]string{"table", "wide", "json", "yaml"}, *form):
			return cli.Usage("--output", *form, "table, wide, json or yaml")
		case *interval < time.Second:
			return cli.Usage("--interval", *interval, "1s or more")
		}
		c, err := flags.Cluster()
		if err != nil {
			return err
		}
		tick := time.NewTicker(*interval)
		defer tick.Stop()
		for {
			if err := showStatus(ctx, c, *pool, *form, stdout); err != nil {
				return err
			}
			if !*watch {
				return nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func showStatus(ctx context.Context, c *commands.Cluster, pool, form string, stdout io.Writer) error {
	v, err := lookAtPools(ctx, c)
	if err != nil {
		return err
	}
	if names := v.PoolNames(); pool != "" && !slices.Contains(names, pool) {
		return cli.Usage("--pool", pool, "the name of a pool: "+strings.Join(names, ", "))
	}
	return pageOf(v, pool).Write(stdout, form, v.Now)
}
