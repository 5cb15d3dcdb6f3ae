package kind

import (
	"slices"
	"testing"
)

func TestRelists(t *testing.T) {
	const nodes = "/api/v1/nodes?fieldSelector=metadata.name%3Dedge-2"
	again := []string{
		nodes + "&resourceVersion=7&resourceVersionMatch=NotOlderThan by kubelet/v1.37.1 as system:node:edge-2",
		nodes + " by kubelet/v1.37.1 as system:node:edge-2",
		"/api/v1/services by weir-hub as weir:hub:harbour:edge-2",
		"/api/v1/services by weir-hub as system:node:edge-2",
	}
	own := []string{
		nodes + "&resourceVersion=7&resourceVersionMatch=NotOlderThan by weir-hub as system:node:edge-2",
		nodes + " by weir-hub as weir:hub:harbour:edge-2",
		"/api/v1/services?limit=1&resourceVersion=7&resourceVersionMatch=Exact by weir-hub as weir:hub:harbour:edge-2",
		"/apis/storage.k8s.io/v1/csidrivers?limit=1 by weir-hub as weir:hub:harbour:edge-2",
		"/api/v1/pods by weir-node as system:node:edge-2",
	}
	if got := Relists(slices.Concat(again, own)); !slices.Equal(got, again) {
		t.Errorf("got %q\nwant %q", got, again)
	}
}
