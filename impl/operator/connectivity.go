package operator

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
)

// errWays is the answer where a way fails, or is unknown.
var errWays = errors.New("not all ways are known to work")

// connectivityCommand is weir connectivity.
func connectivityCommand() *cobra.Command {
	return commands.New("connectivity",
		"show which ways between nodes, pool and cloud work, as the nodes found it", 0, showWays)
}

func showWays(fs *pflag.FlagSet) commands.Run {
	pool := fs.String("pool", "", "show this pool only")
	form := fs.StringP("output", "o", "table", "table, json or yaml")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		if !slices.Contains([]string{"table", "json", "yaml"}, *form) {
			return cli.Usage("--output", *form, "table, json or yaml")
		}
		c, err := flags.Cluster()
		if err != nil {
			return err
		}
		v := c.Read(ctx)
		if err := errors.Join(v.Failed[commands.Nodes], v.Failed[commands.Pools], v.Failed[commands.Leases]); err != nil {
			return err
		}
		if names := v.PoolNames(); *pool != "" && !slices.Contains(names, *pool) {
			return cli.Usage("--pool", *pool, "the name of a pool: "+strings.Join(names, ", "))
		}
		r := WaysOf(v, *pool)
		if err := r.Write(stdout, *form); err != nil {
			return err
		}
		if !r.Success {
			return errWays
		}
		return nil
	}
}
