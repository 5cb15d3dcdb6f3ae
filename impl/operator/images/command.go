package images

import "github.com/weir-edge/weir/impl/cli"

// Commands are those of weir images; program is how the user calls it.
func Commands(program string) []cli.Command {
	c := commands{program}
	return []cli.Command{
		{Name: "images list", Args: "[IMAGE...]", About: "show which nodes of a pool have which image", Run: c.list},
		{
			Name: "images pull", Args: "--pool POOL IMAGE...", About: "bring images to a pool ahead of a roll-out",
			Run: c.pull,
		},
	}
}
