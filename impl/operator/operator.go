package operator

import (
	"slices"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/operator/node"
)

// Commands are all of them; program is how the user calls it.
func Commands(program string) cli.Commands {
	return cli.Commands{
		Program: program, About: "puts Weir into a cluster, looks after it there, and takes it off again.",
		All: slices.Concat(node.Commands(program)),
	}
}
