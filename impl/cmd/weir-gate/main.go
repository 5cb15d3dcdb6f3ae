// Command weir-gate is the relay beside kube-apiserver: pools read there as differences what they share.
package main

import (
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/gate"
)

func main() { cli.Main("weir-gate", gate.Run) }
