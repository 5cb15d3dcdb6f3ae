package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ObjectKind is an object of the cloud that a fault changes or removes.
type ObjectKind string

// The objects that say what a pool is. Those that weir-manager keeps are named leader-hub-<pool>.
const (
	NodePoolObject      ObjectKind = "NodePool"
	PoolObject          ObjectKind = "Pool"
	NodeObject          ObjectKind = "Node"
	ServiceObject       ObjectKind = "Service"
	EndpointsObject     ObjectKind = "Endpoints"
	EndpointSliceObject ObjectKind = "EndpointSlice"
)

// Kept reports whether weir-manager puts the object right. A fault waits for that, and writes nothing back.
func (k ObjectKind) Kept() bool {
	return slices.Contains([]ObjectKind{ServiceObject, EndpointsObject, EndpointSliceObject}, k)
}

// parts are the fields of the kind that a patch may name.
func (k ObjectKind) parts() []string {
	switch k {
	case NodeObject:
		return []string{"metadata"}
	case EndpointsObject:
		return []string{"metadata", "subsets"}
	case EndpointSliceObject:
		return []string{"metadata", "endpoints", "ports"}
	}
	return []string{"metadata", "spec"}
}

const maxPatch = 64 << 10

// objectKind reads which object an action of a pool is done to.
func (v value) objectKind() ObjectKind {
	all := []ObjectKind{NodePoolObject, PoolObject, NodeObject, ServiceObject, EndpointsObject, EndpointSliceObject}
	names := make([]string, 0, len(all))
	for _, k := range all {
		names = append(names, string(k))
	}
	s, _ := v.choice(names)
	return ObjectKind(s)
}

// patch reads a JSON merge patch. Its values are those that JSON has.
func (v value) patch() (patch map[string]any) {
	const allowed = "a mapping of fields that change, as {spec: {mode: LeaderHubs}}; null takes a field away"
	if v.absent() || v.node.Kind != yaml.MappingNode || len(v.node.Content) == 0 {
		v.wrong(allowed)
		return nil
	}
	var any map[string]any
	err := v.node.Decode(&any)
	var data []byte
	if err == nil {
		data, err = json.Marshal(any)
	}
	switch {
	case err != nil:
		v.mistake("want " + allowed + ": " + strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", ""))
	case len(data) > maxPatch:
		v.mistake(fmt.Sprintf("want at most %d bytes", maxPatch))
	case json.Unmarshal(data, &patch) != nil:
		v.wrong(allowed)
	}
	return patch
}

// withObject refuses what is wrong only together: an object, its patch and the target of a fault.
func (o object) withObject(f Fault, p Pool) {
	if f.Object == "" {
		return
	}
	if node := f.Object == NodeObject; node == (f.Target == WholePool) {
		want := "target: " + string(WholePool)
		if node {
			want = "the hub of a node as target"
		}
		o.fields["object"].contradiction("the target is " + string(f.Target) + ": want " + want)
	}
	if f.Action == Remove && f.Object == NodeObject {
		o.fields["object"].contradiction("want action: " + string(DeleteNode))
	}
	if !p.Enrols {
		o.fields["action"].contradiction(
			"weir-manager does not run, and nothing describes the pool: want topology.pool.enrols: true")
	}
	parts := f.Object.parts()
	for _, name := range slices.Sorted(maps.Keys(f.Patch)) {
		if !slices.Contains(parts, name) {
			o.fields["patch"].contradiction(fmt.Sprintf("%s is not to be changed in a %s: want %s", name, f.Object,
				strings.Join(parts, ", ")))
		}
	}
}

// withOthers refuses a move to a pool that cannot take the node.
func (o object) withOthers(f Fault, p Pool, pools []Pool) {
	if f.Action != Move || f.To == "" {
		return
	}
	to := slices.IndexFunc(pools, func(q Pool) bool { return q.Name == f.To })
	switch {
	case to < 0 || f.To == p.Name:
		o.fields["to"].mistake("want the name of another pool of this file")
	case !p.Enrols || !pools[to].Enrols:
		o.fields["to"].contradiction("hubs ask for no certificates of another pool there: want enrols: true of both")
	case p.Nodes < 2:
		o.fields["target"].contradiction("the pool has one node, and nobody would be left: want more")
	}
}

// Moves reports whether a node goes to another pool.
func (s *Scenario) Moves() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Action == Move })
}

// Changes reports whether a fault changes or removes an object that says what a pool is.
func (s *Scenario) Changes() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Object != "" })
}

// OnlyChanges reports whether nothing else happens: no process ends, so what hubs count goes on.
func (s *Scenario) OnlyChanges() bool {
	return s.Changes() && !slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Object == "" })
}
