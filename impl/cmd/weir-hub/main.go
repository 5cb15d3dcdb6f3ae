// Command weir-hub runs on every edge node: the one door of the node to the Kubernetes API.
package main

import (
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/hub"
)

func main() { cli.Main("weir-hub", hub.Run) }
