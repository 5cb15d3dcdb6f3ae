// Command weir-manager is the part of Weir in the cloud: it tells nodes that are cut off from nodes that are dead.
package main

import (
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/manager"
)

func main() { cli.Main("weir-manager", manager.Run) }
