package connectivity

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/operator/view"
)

// errFails is the answer where a way fails, or is unknown.
var errFails = errors.New("not all ways are known to work")

// Command is weir connectivity; program is how the user calls it.
func Command(program string) cli.Command {
	return cli.Command{
		Name: "connectivity", About: "show which ways between nodes, pool and cloud work, as the nodes found it",
		Run: func(ctx context.Context, args []string, stdout, _ io.Writer) error {
			fs := pflag.NewFlagSet("connectivity", pflag.ContinueOnError)
			pool := fs.String("pool", "", "show this pool only")
			form := fs.StringP("output", "o", "table", "table, json or yaml")
			flags := view.Bind(fs)
			if err := cli.ParseArgs(fs, program+" connectivity", args, 0, stdout); err != nil {
				return err
			}
			if !slices.Contains([]string{"table", "json", "yaml"}, *form) {
				return cli.Usage("--output", *form, "table, json or yaml")
			}
			c, err := flags.Cluster()
			if err != nil {
				return err
			}
			v := c.Read(ctx)
			if err := errors.Join(v.Failed[view.Nodes], v.Failed[view.Pools], v.Failed[view.Leases]); err != nil {
				return err
			}
			if names := v.PoolNames(); *pool != "" && !slices.Contains(names, *pool) {
				return cli.Usage("--pool", *pool, "the name of a pool: "+strings.Join(names, ", "))
			}
			r := Of(v, *pool)
			if err := r.Write(stdout, *form); err != nil {
				return err
			}
			if !r.Success {
				return errFails
			}
			return nil
		},
	}
}
