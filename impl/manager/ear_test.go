package manager

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

func nodeWith(annotations map[string]string, ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n", Labels: map[string]string{contract.NodePoolLabel: "p", "kubernetes.io/os": "linux"},
		Annotations: annotations,
	}}
	n.Spec.Taints = taints
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure}, {Type: corev1.NodeReady, Status: ready},
	}
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"a"}}}
	return n
}

func TestFacts(t *testing.T) {
	unreachable := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}
	for name, c := range map[string]struct {
		node *corev1.Node
		want verdict.Facts
	}{
		"ready":            {nodeWith(nil, corev1.ConditionTrue), verdict.Facts{}},
		"unknown":          {nodeWith(nil, corev1.ConditionUnknown), verdict.Facts{Unreachable: true}},
		"still tainted":    {nodeWith(nil, corev1.ConditionTrue, unreachable), verdict.Facts{Unreachable: true}},
		"its kubelet says": {nodeWith(nil, corev1.ConditionFalse), verdict.Facts{}},
		"binding": {
			nodeWith(map[string]string{contract.BindingAnnotation: "true"}, corev1.ConditionTrue), verdict.Facts{Bound: true},
		},
		"not binding": {
			nodeWith(map[string]string{contract.BindingAnnotation: "false"}, corev1.ConditionTrue), verdict.Facts{},
		},
		"autonomy": {
			nodeWith(map[string]string{contract.AutonomyAnnotation: "true"}, corev1.ConditionTrue), verdict.Facts{Bound: true},
		},
		"for a time": {
			nodeWith(map[string]string{contract.AutonomyDurationAnnotation: "2h"}, corev1.ConditionTrue),
			verdict.Facts{Bound: true, BoundFor: 2 * time.Hour},
		},
		"for ever": {
			nodeWith(map[string]string{contract.AutonomyDurationAnnotation: "0"}, corev1.ConditionTrue),
			verdict.Facts{Bound: true},
		},
		"not a duration": {
			nodeWith(map[string]string{contract.AutonomyDurationAnnotation: "long"}, corev1.ConditionTrue), verdict.Facts{},
		},
	} {
		c.want.Pool = "p"
		if got := factsOf(c.node); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		slim, err := trimNode(c.node)
		if err != nil {
			t.Fatal(err)
		}
		if got := factsOf(slim.(*corev1.Node)); got != c.want {
			t.Errorf("%s, of what the cache holds: %+v", name, got)
		}
		if n := slim.(*corev1.Node); len(n.Status.Images) > 0 || len(n.Labels) != 2 || len(n.Status.Conditions) != 1 {
			t.Errorf("%s: the cache holds %+v", name, n)
		}
		c.node.Labels = map[string]string{corev1.LabelOSStable: "linux"}
		if slim, err = trimNode(c.node); err != nil || len(slim.(*corev1.Node).Labels) > 0 {
			t.Errorf("%s, in no pool: the cache holds %+v, %v", name, slim, err)
		}
	}
}

func TestTrimLease(t *testing.T) {
	renew := metav1.NowMicro()
	slim, err := trimLease(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Annotations: map[string]string{contract.DelegateHeartbeat: contract.Delegated, "a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: &renew, HolderIdentity: ptr.To("n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := slim.(*coordinationv1.Lease)
	if !renewed(l).Equal(renew.Time) || len(l.Annotations) != 1 || l.ManagedFields != nil || l.Spec.HolderIdentity != nil {
		t.Errorf("%+v", l)
	}
}

func TestDescribe(t *testing.T) {
	yes := &corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: reasonDelegated}
	no := &corev1.NodeCondition{Status: corev1.ConditionFalse, Reason: reasonDirect}
	silent, evict := verdict.PoolVerdict{Silent: true},
		verdict.PoolVerdict{Silent: true, GivenUp: true, Policy: verdict.Policy{Evict: true, After: time.Hour}}
	for name, c := range map[string]struct {
		before *corev1.NodeCondition
		v      verdict.Verdict
		p      verdict.PoolVerdict
		want   string
	}{
		"never cut off":          {nil, verdict.Verdict{State: verdict.Normal}, verdict.PoolVerdict{}, ""},
		"delegated":              {nil, verdict.Verdict{State: verdict.Delegated}, verdict.PoolVerdict{}, reasonDelegated},
		"returned":               {yes, verdict.Verdict{State: verdict.Normal}, verdict.PoolVerdict{}, reasonDirect},
		"not known yet":          {yes, verdict.Verdict{State: verdict.Unknown, Kept: true}, silent, ""},
		"dead":                   {nil, verdict.Verdict{State: verdict.Missing, Dead: true}, verdict.PoolVerdict{}, ""},
		"dead after it returned": {no, verdict.Verdict{State: verdict.Missing, Dead: true}, verdict.PoolVerdict{}, ""},
		"dead after it was cut": {
			yes, verdict.Verdict{State: verdict.Missing, Dead: true}, verdict.PoolVerdict{}, reasonMissing,
		},
		"silent for a moment":      {nil, verdict.Verdict{State: verdict.Normal, Kept: true}, silent, ""},
		"silent":                   {nil, verdict.Verdict{State: verdict.Missing, Kept: true}, silent, reasonSilent},
		"given up":                 {nil, verdict.Verdict{State: verdict.Missing}, evict, reasonGivenUp},
		"dead in a pool given up":  {nil, verdict.Verdict{State: verdict.Missing, Dead: true}, evict, ""},
		"its pool is back, not it": {nil, verdict.Verdict{State: verdict.Missing, Kept: true}, verdict.PoolVerdict{}, ""},
	} {
		got := ""
		if d := describe(c.before, c.v, c.p); d != nil {
			got = d.Reason
		}
		if got != c.want && (c.before == nil || got != c.before.Reason) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTrimLong: what a node may make as long as it likes is held so far only.
func TestTrimLong(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Labels: map[string]string{contract.NodePoolLabel: "harbour"}},
	}
	for range 60_000 {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"})
	}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: contract.CertificatesCondition, Message: strings.Repeat("x", 1<<20)},
	}
	slim, err := trimNode(n)
	if err != nil {
		t.Fatal(err)
	}
	if got := slim.(*corev1.Node).Status; cap(got.Addresses) > 2*maxAddresses || len(got.Addresses) != maxAddresses ||
		len(got.Conditions) != 1 || len(got.Conditions[0].Message) != maxMessage {
		t.Errorf("%d addresses, a message of %d bytes", len(got.Addresses), len(got.Conditions[0].Message))
	}
}
