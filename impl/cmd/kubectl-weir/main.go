// Command kubectl-weir is what operators of a cluster with Weir type: as weir, or as kubectl weir, whose name it has.
package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/operator"
)

func main() {
	program := "weir"
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		program = "kubectl weir"
	}
	cli.Main(program, operator.Commands(program).Run)
}
