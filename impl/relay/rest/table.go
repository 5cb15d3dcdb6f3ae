package rest

import (
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// tableOf is the printer of a resource; nil: tables of it come from the cloud.
func tableOf(res relay.Resource) *tablePrinter {
	switch res.WireKind() {
	case wire.Kind{APIVersion: "v1", Kind: "Endpoints"}:
		return endpointsTable
	case wire.Kind{APIVersion: "v1", Kind: "Node"}:
		return nodeTable
	case wire.Kind{APIVersion: "v1", Kind: "Pod"}:
		return podTable
	case wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}:
		return endpointSliceTable
	}
	return nil
}
