package buildinfo

import (
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/cli"
)

// Collector is always 1, and tells by its labels what this process is.
func Collector(component string) prometheus.Collector {
	version, _, _ := strings.Cut(cli.Version(), " "+runtime.Version())
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Always 1: which part of Weir this is, its version, and that of Go.",
		ConstLabels: prometheus.Labels{"component": component, "version": version, "go": runtime.Version()},
	}, func() float64 { return 1 })
}
