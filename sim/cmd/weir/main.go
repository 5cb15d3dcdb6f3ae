// Command weir runs scenarios and renders their reports.
package main

import (
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/command"
)

func main() { cli.Main("weir", command.Run) }
