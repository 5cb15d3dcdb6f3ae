package operator

import (
	"context"
	"io"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/operator/certificates"
)

// poolCommands are those of weir pool; program is how the user calls it.
func poolCommands(program string) []cli.Command {
	by := func(run func(ctx context.Context, program string, args []string, stdout io.Writer) error) func(context.Context,
		[]string, io.Writer, io.Writer) error {
		return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
			return run(ctx, program, args, stdout)
		}
	}
	return []cli.Command{
		{Name: "pool create", Args: "NAME", About: "make the NodePool and the Pool of a pool", Run: by(poolCreate)},
		{Name: "pool list", About: "list pools", Run: by(poolList)},
		{
			Name: "pool describe", Args: "NAME", About: "show a pool: its nodes, and what weir-manager says of it",
			Run: by(poolDescribe),
		},
		{
			Name: "pool suggest", Args: "NAME", About: "show what a pool should share, and what it shares for nobody",
			Run: by(poolSuggest),
		},
		{
			Name: "pool kubeconfig", Args: "NAME", About: "print a kubeconfig for a person, against the coordinator of a pool",
			Run: by(poolKubeconfig),
		},
		{
			Name: "pool rotate", Args: "NAME", About: "replace the authority of a pool, as pki rotate",
			Run: by(certificates.RotatePool),
		},
	}
}
