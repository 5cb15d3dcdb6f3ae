package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

// All annotations of an object may have 256 KiB. Beyond that kube-apiserver refuses all that is put on a Node.
const (
	maxAnnotation  = 8 << 10 // of one value
	maxAnnotations = 64 << 10
)

// AttributesOf reads what a NodePool puts on its Nodes, and tells what of it cannot be put, and why.
func AttributesOf(spec nodepool.Spec) (s Attributes, refused []string) {
	s = Attributes{map[string]string{}, map[string]string{}, map[taintKey]string{}}
	no := func(what, key string, why ...string) bool {
		if len(why) > 0 {
			refused = append(refused, fmt.Sprintf("%s %q: %s", what, key, strings.Join(why, "; ")))
		}
		return len(why) > 0
	}
	for k, v := range spec.Labels {
		if !no("label", k, slices.Concat(refusal(k), validation.IsQualifiedName(k), validation.IsValidLabelValue(v))...) {
			s.labels[k] = v
		}
	}
	size := 0
	for _, k := range slices.Sorted(maps.Keys(spec.Annotations)) {
		v := spec.Annotations[k]
		why := slices.Concat(refusal(k), validation.IsQualifiedName(strings.ToLower(k)))
		if len(v) > maxAnnotation {
			why = append(why, fmt.Sprintf("%d bytes, want %d at most", len(v), maxAnnotation))
		} else if size += len(k) + len(v); size > maxAnnotations {
			why = append(why, fmt.Sprintf("all annotations have more than %d bytes with it", maxAnnotations))
		}
		if !no("annotation", k, why...) {
			s.annotations[k] = v
		}
	}
	effects := []corev1.TaintEffect{
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
	}
	for _, t := range spec.Taints {
		why := slices.Concat(refusal(t.Key), validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value))
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Key == contract.CutOffTaint {
			why = append(why, "it belongs to controllers")
		}
		if !slices.Contains(effects, t.Effect) {
			why = append(why, fmt.Sprintf("effect %q: want one of %v", t.Effect, effects))
		}
		if !no("taint", t.Key, why...) {
			s.taints[taintKey{t.Key, t.Effect}] = t.Value
		}
	}
	slices.Sort(refused)
	return s, refused
}

// refusal tells why a key is not a pool's to say. The policy weir-manager has the same keys.
func refusal(key string) []string {
	switch {
	case key == contract.NodePoolLabel, key == corev1.LabelHostname, strings.HasPrefix(key, contract.RestrictedPrefix),
		strings.HasPrefix(key, contract.PoolGroup+"/"):
		return []string{"it says who a Node is, and a NodePool may not write it"}
	}
	return nil
}

// AttributesCondition is nodepool.AttributesAccepted.
func AttributesCondition(spec nodepool.Spec) metav1.Condition {
	s, refused := AttributesOf(spec)
	c := metav1.Condition{Type: nodepool.AttributesAccepted, Status: metav1.ConditionTrue, Reason: "Accepted"}
	c.Message = fmt.Sprintf("%d labels, annotations and taints", len(s.labels)+len(s.annotations)+len(s.taints))
	if len(refused) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Refused", strings.Join(refused, "; ")
	}
	return c
}
