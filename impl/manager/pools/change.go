package pools

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// change is the merge patch that lets a Node have what its pool wants, and removes what is in its record and not
// wanted; nil: nothing is to be done. It counts only for the Node as it was read.
func change(n *corev1.Node, want Attributes, now metav1.Time) ([]byte, error) {
	text := n.Annotations[contract.PoolAttributes]
	had := recorded(text)
	labels := differ(n.Labels, want.labels, had.labels, func(v string) string { return v })
	annotations := differ(n.Annotations, want.annotations, had.annotations, sum)
	if next := want.record(); next != text {
		if annotations[contract.PoolAttributes] = next; next == "" {
			annotations[contract.PoolAttributes] = nil
		}
	}
	taints, tainted := taintsOf(n.Spec.Taints, want.taints, had.taints, now)
	if len(labels) == 0 && len(annotations) == 0 && !tainted {
		return nil, nil
	}
	metadata := map[string]any{"resourceVersion": n.ResourceVersion, "uid": n.UID}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch := map[string]any{"metadata": metadata}
	if tainted {
		patch["spec"] = map[string]any{"taints": taints}
	}
	return json.Marshal(patch)
}

// differ is what a merge patch says of labels, or of annotations. known is how a value stands in a record.
func differ(have, want, had map[string]string, known func(string) string) map[string]any {
	all := map[string]any{}
	for k, v := range want {
		if is, ok := have[k]; !ok || is != v {
			all[k] = v
		}
	}
	for k, v := range had {
		_, wanted := want[k]
		if is, ok := have[k]; ok && !wanted && known(is) == v { // else somebody else wrote it since
			all[k] = nil
		}
	}
	return all
}

// taintsOf are the taints that a Node is to have, and whether they are others than it has.
func taintsOf(have []corev1.Taint, want, had map[taintKey]string, now metav1.Time) (all []corev1.Taint, changed bool) {
	all = []corev1.Taint{}
	there := map[taintKey]bool{}
	for _, t := range have {
		k := taintKey{t.Key, t.Effect}
		value, wanted := want[k]
		was, put := had[k]
		switch {
		case wanted && t.Value != value: // overwritten below
			changed = true
			continue
		case !wanted && put && was == t.Value:
			changed = true
			continue
		}
		there[k] = true
		all = append(all, t)
	}
	for _, k := range slices.SortedFunc(maps.Keys(want), taintKey.compare) {
		v := want[k]
		if there[k] {
			continue
		}
		t := corev1.Taint{Key: k.key, Value: v, Effect: k.effect}
		if k.effect == corev1.TaintEffectNoExecute {
			t.TimeAdded = &now
		}
		all, changed = append(all, t), true
	}
	return all, changed
}
