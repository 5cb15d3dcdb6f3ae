package command

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/sim/proc/gobuild"
	"github.com/weir-edge/weir/sim/structure"
)

func printStructure(ctx context.Context, args []string, stdout, _ io.Writer) error {
	if err := parse(pflag.NewFlagSet("structure", pflag.ContinueOnError), "structure", args, 0, stdout); err != nil {
		return err
	}
	root, err := gobuild.Root("")
	if err != nil {
		return err
	}
	return structure.Print(ctx, stdout, root)
}
