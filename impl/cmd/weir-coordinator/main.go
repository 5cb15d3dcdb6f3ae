// Command weir-coordinator is the small Kubernetes API of an edge pool: Leases, and relays of what the cloud knows.
package main

import (
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator"
)

func main() { cli.Main("weir-coordinator", coordinator.Run) }
