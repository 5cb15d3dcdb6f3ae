package operator

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
)

// poolSuggest prints what a pool should share, and what it shares for nobody.
func poolSuggest(fs *pflag.FlagSet) commands.Run {
	form := fs.StringP("output", "o", "table", "table, json or yaml")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		if !isForm(*form) {
			return cli.Usage("--output", *form, "table, json or yaml")
		}
		v, err := readPools(ctx, flags, commands.APIServices)
		if err != nil {
			return err
		}
		name := args[0]
		if names := v.PoolNames(); !slices.Contains(names, name) {
			return cli.Usage("NAME", name, "the name of a pool: "+strings.Join(names, ", "))
		}
		own := v.Pool(name)
		if own == nil {
			return fmt.Errorf("there is no Pool %s, in whose status weir-manager keeps what hubs tell: make one beside the "+
				"NodePool", name)
		}
		s := suggest(own, v.NodePool(name), v.Aggregated, v.Now)
		return s.Write(stdout, *form)
	}
}
