package eviction

import (
	"context"
	"strings"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
)

// saved is what hubs say to have saved since their start, as weir status sums it: what clients got from relays, less
// what was fetched for these.
func (c *column) saved(ctx context.Context) (bytes float64) {
	if c.mode != runtime.Weir {
		return 0
	}
	c.eachHub(ctx, func(_ runtime.PartID, m parts.Metrics) {
		bytes += m.Sum("weir_hub_served_bytes_total", `route="`+answer.ByRelay+`"`) -
			m.Sum("weir_hub_cloud_bytes_total", `class="`+string(runtime.ClassPool)+`"`)
	})
	return bytes
}

// ofAllNodes sums the bytes of reads that are the same on every node.
func ofAllNodes(causes []report.Cause) (bytes float64) {
	for _, x := range causes {
		_, asks, _ := strings.Cut(x.What, " ")
		verb, what, _ := strings.Cut(asks, " ")
		if (verb == "list" || verb == "watch") && !strings.Contains(what, ",") {
			bytes += x.Bytes
		}
	}
	return bytes
}

func forPool(x link.Sample) bool { return x.Class == runtime.ClassPool }
