// Command generate writes the templates of the chart that follow from weir-manager, into the working directory.
package main

import (
	"fmt"
	"os"

	"github.com/weir-edge/weir/charts"
	"github.com/weir-edge/weir/impl/manager/manifests"
)

func main() {
	templates, err := charts.Templates(manifests.All(), manifests.GateAccess(), manifests.GatePods())
	for name, text := range templates {
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
