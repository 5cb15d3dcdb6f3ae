package operator

import (
	"github.com/spf13/cobra"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/operator/certificates"
)

// poolCommand is weir pool.
func poolCommand() *cobra.Command {
	return commands.Group("pool", "make, show and change pools",
		commands.New("create NAME", "make the NodePool and the Pool of a pool", 1, poolCreate),
		commands.New("list", "list pools", 0, poolList),
		commands.New("describe NAME", "show a pool: its nodes, and what weir-manager says of it", 1, poolDescribe),
		commands.New("suggest NAME", "show what a pool should share, and what it shares for nobody", 1, poolSuggest),
		commands.New("kubeconfig NAME", "print a kubeconfig for a person, against the coordinator of a pool", 1,
			poolKubeconfig),
		commands.New("rotate NAME", "replace the authority of a pool, as pki rotate", 1, certificates.RotatePool),
	)
}
