package process

import (
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/cli"
)

// Version is that of this build, without that of Go.
func Version() string {
	version, _, _ := strings.Cut(cli.Version(), " "+runtime.Version())
	return version
}

// Collector is always 1, and tells by its labels what this process is.
func Collector(component string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Always 1: which part of Weir this is, its version, and that of Go.",
		ConstLabels: prometheus.Labels{"component": component, "version": Version(), "go": runtime.Version()},
	}, func() float64 { return 1 })
}

// Member is always 1, and tells by its labels where this process is: the pool that it is in, and its node, "" for a
// coordinator. Alerts join it by instance to name both.
func Member(node, pool string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_member_info", Help: "Always 1: the pool that this process is in, and its node, if it is a hub.",
		ConstLabels: prometheus.Labels{"node": node, "pool": pool},
	}, func() float64 { return 1 })
}
