package pool

import (
	"context"
	"io"

	"github.com/weir-edge/weir/impl/cli"
)

// Commands are those of weir pool; program is how the user calls it.
func Commands(program string) []cli.Command {
	by := func(run func(ctx context.Context, program string, args []string, stdout io.Writer) error) func(context.Context, []string, io.Writer, io.Writer) error {
		return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
			return run(ctx, program, args, stdout)
		}
	}
	return []cli.Command{
		{Name: "pool create", Args: "NAME", About: "make the NodePool and the Pool of a pool", Run: by(create)},
		{Name: "pool list", About: "list pools", Run: by(list)},
		{Name: "pool describe", Args: "NAME", About: "show a pool: its nodes, and what weir-manager says of it", Run: by(describe)},
	}
}
