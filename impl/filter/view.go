package filter

import (
	"maps"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// scope is how near endpoints have to be.
type scope string

const (
	anywhere scope = ""
	sameNode scope = "node"
	samePool scope = "pool"
)

// serviceLabel of a slice names its Service.
const serviceLabel = "kubernetes.io/service-name"

// view is what is known of topology. It is immutable.
type view struct {
	node     string
	members  map[string]bool  // nodes of the pool, with this one; nil: not known
	services map[string]scope // by namespace/name, of those that say by annotation
	roots    string           // certificates of the node's own authority, of an Own
	pods     master           // where pods call the API, of an Own; the zero value: where the cloud says
}

// takes tells which nodes' endpoints of a slice are near enough; nil if all are.
func (v *view) takes(o *wire.Object) func(node string) bool {
	of := scope(o.Labels.Get(contract.TopologyLabel))
	if of != sameNode && of != samePool {
		of = v.services[o.Namespace+"/"+o.Labels.Get(serviceLabel)]
	}
	switch {
	case of == sameNode:
		return func(node string) bool { return node == v.node }
	case of == samePool && v.members != nil:
		return func(node string) bool { return v.members[node] }
	}
	return nil
}

func scopeOf(annotation string) scope {
	switch annotation {
	case contract.HostnameTopology:
		return sameNode
	case contract.PoolTopology, contract.ZoneTopology:
		return samePool
	}
	return anywhere
}

func (v *view) equal(o *view) bool {
	return v.roots == o.roots && v.pods == o.pods && (v.members == nil) == (o.members == nil) &&
		maps.Equal(v.members, o.members) && maps.Equal(v.services, o.services)
}

// kept is what of a view is in the file.
type kept struct {
	Members  []string         `json:"members,omitempty"`
	Services map[string]scope `json:"services,omitempty"`
}

func membersOf(names []string, node string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	m := map[string]bool{node: true}
	for _, n := range names {
		m[n] = true
	}
	return m
}
