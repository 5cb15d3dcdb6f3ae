package operator

import (
	"slices"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/operator/certificates"
	"github.com/weir-edge/weir/impl/operator/check"
	"github.com/weir-edge/weir/impl/operator/node"
	"github.com/weir-edge/weir/impl/operator/pool"
	"github.com/weir-edge/weir/impl/operator/status"
	"github.com/weir-edge/weir/impl/operator/sysdump"
)

// Commands are all of them; program is how the user calls it.
func Commands(program string) cli.Commands {
	return cli.Commands{
		Program: program, About: "puts Weir into a cluster, looks after it there, and takes it off again.",
		All: slices.Concat([]cli.Command{check.Command(program), status.Command(program)}, pool.Commands(program), node.Commands(program), certificates.Commands(program), []cli.Command{sysdump.Command(program)}),
	}
}
