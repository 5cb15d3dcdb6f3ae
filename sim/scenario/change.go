package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Objects is a laboratory with objects that say what a pool is.
type Objects interface {
	// ChangeObject does to one what a JSON merge patch says, or deletes it if there is none. The fault lasts until the
	// pool has taken that up, and is healed by the content of before.
	ChangeObject(ctx context.Context, at *Aim, of ObjectKind, patch map[string]any) (Going, error)
}

// Change gives an object that says what the pool is other content.
type Change struct {
	toObject

	Object ObjectKind
	Patch  map[string]any // a JSON merge patch
}

func (*Change) rule() actionRule { return takes("change", links(), "for object patch repeat? every?") }

func (k *Change) check(o object, f Fault, p Pool, _ []Pool) {
	o.withObject(k.Object, f, p)
	parts := k.Object.parts()
	for _, name := range slices.Sorted(maps.Keys(k.Patch)) {
		if k.Object != "" && !slices.Contains(parts, name) {
			o.fields["patch"].contradiction(fmt.Sprintf("%s is not to be changed in a %s: want %s", name, k.Object,
				strings.Join(parts, ", ")))
		}
	}
}

func (k *Change) own() []own {
	return []own{
		{"object", k.Object, func(v value, _ Pool) { k.Object = v.objectKind() }},
		{"patch", k.Patch, func(v value, _ Pool) { k.Patch = v.patch() }},
	}
}

func (k *Change) words() string { return ", " + string(k.Object) }

func (*Change) unmeasured(metric string, s *Scenario) string { return unchanged(metric, s) }

// Begin implements Kind.
func (k *Change) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Objects) (Going, error) { return of.ChangeObject(ctx, at, k.Object, k.Patch) })
}

// Remove deletes such an object. It is healed by one of the same content.
type Remove struct {
	toObject

	Object ObjectKind
}

func (*Remove) rule() actionRule {
	return takes("remove", []Target{WholePool}, "for object repeat? every?")
}

func (k *Remove) check(o object, f Fault, p Pool, _ []Pool) { o.withObject(k.Object, f, p) }

func (k *Remove) own() []own {
	return []own{{"object", k.Object, func(v value, _ Pool) { k.Object = v.objectKind() }}}
}

func (k *Remove) words() string { return ", " + string(k.Object) }

// Begin implements Kind.
func (k *Remove) Begin(ctx context.Context, lab Lab, at *Aim) (Going, error) {
	return with(lab, func(of Objects) (Going, error) { return of.ChangeObject(ctx, at, k.Object, nil) })
}

// withObject refuses what is wrong only together: an object and the target of a fault.
func (o object) withObject(kind ObjectKind, f Fault, p Pool) {
	if kind == "" {
		return
	}
	if node := kind == NodeObject; node == (f.Target == WholePool) {
		want := "target: " + string(WholePool)
		if node {
			want = "the hub of a node as target"
		}
		o.fields["object"].contradiction("the target is " + string(f.Target) + ": want " + want)
	}
	if is[*Remove](f) && kind == NodeObject {
		o.fields["object"].contradiction("want action: delete-node")
	}
	if !p.Enrols {
		o.fields["action"].contradiction(
			"weir-manager does not run, and nothing describes the pool: want topology.pool.enrols: true")
	}
}

// Changes reports whether a fault changes or removes an object that says what a pool is.
func (s *Scenario) Changes() bool { return happen[*Change](s) || happen[*Remove](s) }

// OnlyChanges reports whether nothing else happens: no process ends, so what hubs count goes on.
func (s *Scenario) OnlyChanges() bool {
	return s.Changes() && !slices.ContainsFunc(s.Faults, func(f Fault) bool { return !is[*Change](f) && !is[*Remove](f) })
}

func unchanged(metric string, s *Scenario) string {
	switch {
	case metric == "applied_seconds_max" && !s.Changes():
		return metric + " is measured when an object changes: want a fault of action change or remove"
	case metric == "relay_lists" && !s.OnlyChanges():
		return metric + " is measured when objects change and nothing else happens: hubs count until they end"
	}
	return ""
}

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
