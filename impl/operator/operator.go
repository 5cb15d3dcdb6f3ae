package operator

import (
	"slices"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/operator/certificates"
	"github.com/weir-edge/weir/impl/operator/check"
	"github.com/weir-edge/weir/impl/operator/connectivity"
	"github.com/weir-edge/weir/impl/operator/images"
	"github.com/weir-edge/weir/impl/operator/node"
)

// Commands are all of them; program is how the user calls it. The library of their clients logs nothing from here on:
// left alone it complains of that, with a stack, once a command has run for half a minute.
func Commands(program string) cli.Commands {
	ctrllog.SetLogger(logr.Discard())
	return cli.Commands{
		Program: program, About: "puts Weir into a cluster, looks after it there, and takes it off again.",
		All: slices.Concat([]cli.Command{check.Command(program), statusCommand(program),
			connectivity.Command(program)}, poolCommands(program),
			node.Commands(program), images.Commands(program), certificates.Commands(program),
			[]cli.Command{sysdumpCommand(program)}),
	}
}
