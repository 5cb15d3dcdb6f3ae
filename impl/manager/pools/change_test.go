package pools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

// put does to a Node what the API does with the patch, and reports whether there was one.
func put(t *testing.T, n *corev1.Node, spec nodepool.Spec) bool {
	t.Helper()
	want, refused := AttributesOf(spec)
	if len(refused) > 0 {
		t.Fatal(refused)
	}
	raw, err := change(n, want, metav1.NewTime(time.Unix(5, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if raw == nil {
		return false
	}
	var patch struct {
		Metadata struct{ Labels, Annotations map[string]*string }
		Spec     struct{ Taints []corev1.Taint }
	}
	if err := json.Unmarshal(raw, &patch); err != nil {
		t.Fatal(err)
	}
	merge := func(into map[string]string, from map[string]*string) {
		for k, v := range from {
			if delete(into, k); v != nil {
				into[k] = *v
			}
		}
	}
	merge(n.Labels, patch.Metadata.Labels)
	merge(n.Annotations, patch.Metadata.Annotations)
	if patch.Spec.Taints != nil {
		n.Spec.Taints = patch.Spec.Taints
	}
	return true
}

func text(n *corev1.Node) string {
	all := []string{}
	for _, m := range []map[string]string{n.Labels, n.Annotations} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if k != contract.PoolAttributes {
				all = append(all, k+"="+m[k])
			}
		}
	}
	for _, t := range n.Spec.Taints {
		all = append(all, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	return strings.Join(all, " ")
}

// TestChange: what a pool says is put, changed and removed. What others wrote stays.
func TestChange(t *testing.T) {
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"theirs": "1", "both": "old"}, Annotations: map[string]string{"note": "x"},
		},
	}
	n.Spec.Taints = []corev1.Taint{
		taint("theirs", "", corev1.TaintEffectNoExecute), taint("both", "old", corev1.TaintEffectNoSchedule),
	}
	one := nodepool.Spec{
		Labels: map[string]string{
			"a": "1", "both": "new", "c": "",
		}, Annotations: map[string]string{"m": "line\nline=2 label x=y"},
		Taints: []corev1.Taint{
			taint("both", "new", corev1.TaintEffectNoSchedule), taint("edge", "", corev1.TaintEffectNoExecute),
		},
	}
	step := func(what string, spec nodepool.Spec, want string) {
		t.Helper()
		put(t, n, spec)
		if got := text(n); got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
		if put(t, n, spec) {
			t.Errorf("%s: there is something to do again: %s", what, text(n))
		}
	}
	step("put", one,
		"a=1 both=new c= theirs=1 m=line\nline=2 label x=y note=x theirs=:NoExecute both=new:NoSchedule edge=:NoExecute")
	if n.Spec.Taints[2].TimeAdded == nil {
		t.Error("taint eviction goes by the time of a taint, and there is none")
	}
	two := nodepool.Spec{
		Labels: map[string]string{"a": "2"}, Taints: []corev1.Taint{taint("edge", "x", corev1.TaintEffectNoExecute)},
	}
	n.Labels["c"] = "somebody's"
	step("changed", two, "a=2 c=somebody's theirs=1 note=x theirs=:NoExecute edge=x:NoExecute")
	delete(n.Labels, "a")
	step("taken away by somebody", two, "a=2 c=somebody's theirs=1 note=x theirs=:NoExecute edge=x:NoExecute")
	n.Spec.Taints[1].Value = "theirs now"
	step("gone", nodepool.Spec{}, "c=somebody's theirs=1 note=x theirs=:NoExecute edge=theirs now:NoExecute")
	if r, ok := n.Annotations[contract.PoolAttributes]; ok {
		t.Errorf("a record of nothing: %q", r)
	}
	n.Annotations[contract.PoolAttributes] = "label theirs\ntaint theirs\nlabel =x\n\nnonsense"
	step("a record that somebody wrote", nodepool.Spec{},
		"c=somebody's theirs=1 note=x theirs=:NoExecute edge=theirs now:NoExecute")
}

// TestRefused: what says who a Node is, what belongs to controllers, and what the API would refuse is left out, and the
// rest is put.
func TestRefused(t *testing.T) {
	many := nodepool.Spec{
		Labels: map[string]string{
			contract.NodePoolLabel: "x", corev1.LabelHostname: "x", contract.CoordinatorLabel: "a", "weir.dev/x": "y",
			"no key": "x", "a": "no value", "good": "yes",
		},
		Annotations: map[string]string{
			contract.PoolAttributes: "label a=b", "long": strings.Repeat("x", maxAnnotation+1), "good": "yes, any value",
		},
		Taints: []corev1.Taint{
			{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
			{Key: contract.CutOffTaint, Effect: corev1.TaintEffectNoSchedule},
			{Key: "a", Effect: "Never"}, {Key: "good", Effect: corev1.TaintEffectNoSchedule},
		},
	}
	s, refused := AttributesOf(many)
	if len(refused) != 11 || s.record() != "annotation good="+sum("yes, any value")+
		"\nlabel good=yes\ntaint good=:NoSchedule" {
		t.Errorf("%d refused: %q\n%s", len(refused), refused, s.record())
	}
	if c := AttributesCondition(many); c.Status != metav1.ConditionFalse || c.Reason != "Refused" ||
		!strings.Contains(c.Message, contract.NodePoolLabel) {
		t.Errorf("%+v", c)
	}
}

// TestTooManyAnnotations: what is more than a Node can have is refused, and does not keep the rest from being put.
func TestTooManyAnnotations(t *testing.T) {
	spec := nodepool.Spec{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{}}
	for i := range 40 {
		spec.Annotations[fmt.Sprintf("note-%02d", i)] = strings.Repeat("x", maxAnnotation)
	}
	s, refused := AttributesOf(spec)
	size := 0
	for k, v := range s.annotations {
		size += len(k) + len(v)
	}
	if size > maxAnnotations || len(s.annotations)+len(refused) != 40 || s.annotations["note-00"] == "" ||
		s.labels["a"] != "b" {
		t.Errorf("%d annotations of %d bytes, %d refused", len(s.annotations), size, len(refused))
	}
}
