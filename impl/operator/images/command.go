package images

import (
	"github.com/spf13/cobra"

	"github.com/weir-edge/weir/impl/commands"
)

// Command is weir images.
func Command() *cobra.Command {
	return commands.Group("images", "show which node has which image, and pull ahead of a roll-out",
		commands.New("list [IMAGE...]", "show which nodes of a pool have which image", commands.Any, list),
		commands.New("pull --pool POOL IMAGE...", "bring images to a pool ahead of a roll-out", commands.Any, pulls),
	)
}
