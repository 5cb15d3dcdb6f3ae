package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/kind"
)

func clean(_ *pflag.FlagSet) commands.Run {
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		return kind.Clean(ctx, func(m string) { fmt.Fprintln(stdout, m) })
	}
}
