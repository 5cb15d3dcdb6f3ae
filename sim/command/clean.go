package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/sim/kind"
)

func clean(ctx context.Context, args []string, stdout, _ io.Writer) error {
	fs := pflag.NewFlagSet("clean", pflag.ContinueOnError)
	if err := parse(fs, "clean", args, 0, stdout); err != nil {
		return err
	}
	return kind.Clean(ctx, func(m string) { fmt.Fprintln(stdout, m) })
}
