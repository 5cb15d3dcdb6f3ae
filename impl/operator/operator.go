package operator

import (
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/operator/certificates"
	"github.com/weir-edge/weir/impl/operator/check"
	"github.com/weir-edge/weir/impl/operator/estimate"
	"github.com/weir-edge/weir/impl/operator/images"
	"github.com/weir-edge/weir/impl/operator/node"
)

// Commands are all of them; program is how the user calls it. The library of their clients logs nothing from here on:
// left alone it complains of that, with a stack, once a command has run for half a minute.
func Commands(program string) commands.Program {
	ctrllog.SetLogger(logr.Discard())
	return commands.Program{
		Name: program, About: "puts Weir into a cluster, looks after it there, and takes it off again.",
		All: append([]*cobra.Command{
			check.Command(), statusCommand(), connectivityCommand(), poolCommand(), node.Command(), images.Command(),
			certificates.Command(), estimate.Command(program), sysdumpCommand(program),
		}, podCommands()...),
	}
}
