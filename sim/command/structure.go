package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/proc/gobuild"
	"github.com/weir-edge/weir/sim/structure"
)

func printStructure(fs *pflag.FlagSet) commands.Run {
	of := fs.String("back", "",
		"package, as in impl/role: list the arrows that run back in it, each with one thing that it uses")
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		root, err := gobuild.Root("")
		if err != nil {
			return err
		}
		if *of == "" {
			return structure.Print(ctx, stdout, root)
		}
		ps, err := structure.Load(ctx, root, "./"+*of)
		if err != nil {
			return err
		}
		if len(ps) != 1 {
			return cli.Usage("--back", *of, "one package of this repository")
		}
		for _, arrow := range ps[0].Back {
			fmt.Fprintln(stdout, arrow)
		}
		return nil
	}
}
