package eviction

import (
	"testing"

	"github.com/weir-edge/weir/sim/report"
)

// TestOfAllNodes: what counts as shareable are lists and watches of whole resources.
func TestOfAllNodes(t *testing.T) {
	got := ofAllNodes([]report.Cause{
		{What: "kube-proxy watch endpointslices", Bytes: 1}, {What: "kubelet list services", Bytes: 2},
		{What: "kubelet watch pods, of the node", Bytes: 4}, {What: "kubelet watch nodes, one", Bytes: 8},
		{What: "kubelet patch nodes/status, one", Bytes: 16}, {What: "kubelet get /readyz", Bytes: 32},
		{What: "connections", Bytes: 64}, {What: "TLS", Bytes: 128}, {What: "other requests", Bytes: 256},
		{What: "kubelet watch configmaps, of a namespace", Bytes: 512},
	})
	if got != 3 {
		t.Errorf("%v bytes, want 3", got)
	}
}
