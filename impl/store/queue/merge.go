package queue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// missing stands for a value that is not there. JSON's null is nil.
type missing struct{}

// decodeValue reads JSON without losing digits of numbers. Nothing at all is missing.
func decodeValue(b []byte) (any, error) {
	if len(b) == 0 {
		return missing{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("something follows the value")
	}
	return v, nil
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// merge gives theirs with what changed from base to ours. Where both changed the same thing, ours counts: a node is the
// authority on its status. Values of a map are merged one by one, and so are the elements of a list that can be told
// apart by type or name, as conditions and containerStatuses can; any other list, and everything else, is one value.
// So is a condition, whose state, reason and times belong together. What a kubelet says in one of its own (ofKubelet)
// counts also where it has not changed: of nodes that the cloud does not hear it says something else by itself.
func merge(base, ours, theirs any) any {
	if equal(theirs, ours) {
		return ours
	}
	if o, ok := ours.([]any); ok {
		if t, ok := theirs.([]any); ok {
			b, _ := base.([]any)
			switch key := elementKey(b, o, t); {
			case key == "type":
				return mergeLists(key, b, o, t, mergeCondition)
			case key != "" && !equal(base, ours):
				return mergeLists(key, b, o, t, func(_ string, b, o, t any) any { return merge(b, o, t) })
			}
		}
	}
	if equal(base, ours) {
		return theirs
	}
	if o, ok := ours.(map[string]any); ok {
		if t, ok := theirs.(map[string]any); ok {
			b, _ := base.(map[string]any)
			return mergeMaps(b, o, t)
		}
	}
	return ours
}

func at(m map[string]any, k string) any {
	if v, ok := m[k]; ok {
		return v
	}
	return missing{}
}

func mergeMaps(base, ours, theirs map[string]any) map[string]any {
	out := make(map[string]any, len(theirs))
	for k, t := range theirs {
		if v := merge(at(base, k), at(ours, k), t); v != (missing{}) {
			out[k] = v
		}
	}
	for k, o := range ours {
		if _, ok := theirs[k]; ok {
			continue
		}
		if v := merge(at(base, k), o, missing{}); v != (missing{}) {
			out[k] = v
		}
	}
	return out
}

// elementKey is the field by which the elements of all lists can be told apart, "" if there is none.
func elementKey(lists ...[]any) string {
	for _, key := range []string{"type", "name"} {
		if keyed(key, lists) {
			return key
		}
	}
	return ""
}

func keyed(key string, lists [][]any) bool {
	for _, l := range lists {
		seen := make(map[string]bool, len(l))
		for _, e := range l {
			m, _ := e.(map[string]any)
			name, ok := m[key].(string)
			if !ok || seen[name] {
				return false
			}
			seen[name] = true
		}
	}
	return true
}

// ofKubelet are the conditions of Nodes and Pods that a kubelet alone decides. The cloud's node lifecycle controller
// makes those of a Node Unknown, and Ready of its Pods False, when it has not heard the node for a while
// (k8s.io/kubernetes/pkg/controller/nodelifecycle).
var ofKubelet = map[string]bool{
	"Ready": true, "MemoryPressure": true, "DiskPressure": true, "PIDPressure": true,
	"ContainersReady": true, "Initialized": true, "PodReadyToStartContainers": true,
}

func mergeCondition(name string, base, ours, theirs any) any {
	if _, said := ours.(map[string]any); said && ofKubelet[name] || !equal(base, ours) {
		return ours
	}
	return theirs
}

// mergeLists keeps the order of theirs; what only ours has comes behind, in its order. one merges two elements of a
// name.
func mergeLists(key string, base, ours, theirs []any, one func(name string, base, ours, theirs any) any) []any {
	b, o := index(key, base), index(key, ours)
	out := make([]any, 0, len(theirs))
	have := map[string]bool{}
	for _, e := range theirs {
		name := nameOf(key, e)
		have[name] = true
		if v := one(name, at(b, name), at(o, name), e); v != (missing{}) {
			out = append(out, v)
		}
	}
	for _, e := range ours {
		name := nameOf(key, e)
		if have[name] {
			continue
		}
		if v := one(name, at(b, name), e, missing{}); v != (missing{}) {
			out = append(out, v)
		}
	}
	return out
}

func nameOf(key string, e any) string {
	m, _ := e.(map[string]any)
	name, _ := m[key].(string)
	return name
}

func index(key string, l []any) map[string]any {
	m := make(map[string]any, len(l))
	for _, e := range l {
		m[nameOf(key, e)] = e
	}
	return m
}

// tally counts the single values that changed from base to ours, and those of them that theirs has.
func tally(base, ours, theirs any) (changed, same int) {
	if equal(base, ours) {
		return 0, 0
	}
	o, isMap := ours.(map[string]any)
	b, wasMap := base.(map[string]any)
	if isMap || wasMap {
		t, _ := theirs.(map[string]any)
		return tallyMaps(b, o, t)
	}
	lo, isList := ours.([]any)
	lb, wasList := base.([]any)
	if isList || wasList {
		lt, _ := theirs.([]any)
		if key := elementKey(lb, lo, lt); key != "" {
			return tallyMaps(index(key, lb), index(key, lo), index(key, lt))
		}
	}
	if equal(ours, theirs) {
		return 1, 1
	}
	return 1, 0
}

func tallyMaps(base, ours, theirs map[string]any) (changed, same int) {
	count := func(k string) {
		c, s := tally(at(base, k), at(ours, k), at(theirs, k))
		changed, same = changed+c, same+s
	}
	for k := range ours {
		count(k)
	}
	for k := range base {
		if _, ok := ours[k]; !ok {
			count(k)
		}
	}
	return changed, same
}
