package managertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/lifecycle/api"
)

// asked is one pod as the policies may see it.
type asked struct {
	name, node  string
	annotations map[string]string
	conditions  []corev1.PodCondition
}

// testEmulation sends the same requests about pods to kube-apiserver with the real policies and to the apiserver in
// memory that simulated schedules run against, and wants the same verdicts.
func testEmulation(t *testing.T, w *world) {
	w.nodes(t, "emulation", "e-kept", "e-bound", "e-free")
	memory := api.New(api.Config{})
	inMemory := func(user string) kubernetes.Interface {
		c, err := kubernetes.NewForConfig(memory.As(user))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	began := metav1.NewTime(time.Now().Add(-time.Hour).UTC().Truncate(time.Second))
	is := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: began}
	}
	var pods []asked
	for _, node := range []string{"e-kept", "e-bound", "e-free", ""} {
		for i, conditions := range [][]corev1.PodCondition{
			nil,
			{is(corev1.PodReady, corev1.ConditionTrue, "")},
			{is(corev1.PodReady, corev1.ConditionFalse, "Why")},
			{is(corev1.PodReady, corev1.ConditionTrue, "Why"), is(corev1.ContainersReady, corev1.ConditionTrue, "")},
			{
				is(corev1.PodReady, corev1.ConditionTrue, ""),
				is(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager"),
			},
			{is(corev1.DisruptionTarget, corev1.ConditionFalse, "DeletionByTaintManager")},
			{is(corev1.DisruptionTarget, corev1.ConditionTrue, "PreemptionByScheduler")},
		} {
			for k, annotations := range []map[string]string{
				nil, {contract.BindingAnnotation: "true"}, {contract.BindingAnnotation: "false"},
			} {
				if k > 0 && i > 1 {
					continue
				}
				pods = append(pods, asked{
					strings.TrimSuffix(fmt.Sprintf("e-%d-%d-%s", i, k, node), "-"), node, annotations, conditions,
				})
			}
		}
	}
	for _, c := range []kubernetes.Interface{w.client, inMemory("somebody")} {
		for _, p := range pods {
			createPod(t, c, p)
		}
	}
	for _, name := range []string{contract.KeptNodes, contract.BoundNodes} {
		listed := map[string]string{
			map[string]string{contract.KeptNodes: "e-kept", contract.BoundNodes: "e-bound"}[name]: "emulation",
		}
		w.list(t, name, fmt.Sprintf("{%q:%q}", keyOf(listed), "emulation"))
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: name}, Data: listed}
		if _, err := inMemory("somebody").CoreV1().ConfigMaps(c.Namespace).Create(t.Context(), c,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(t, "the policies are in force", func() bool {
		c := w.as(nodeController, accounts...)
		return apierrors.IsForbidden(remove(t, c, "e-1-0-e-kept", true)) &&
			apierrors.IsForbidden(remove(t, c, "e-1-0-e-bound", true))
	})

	denied, kept := 0, 0
	for user, groups := range map[string][]string{
		nodeController: accounts, sharedUser: {"system:masters"}, replicaSets: {"system:masters"},
		"somebody": {"system:masters"},
	} {
		actual, emulated := w.as(user, groups...), inMemory(user)
		for _, p := range pods {
			a, b := remove(t, actual, p.name, true), remove(t, emulated, p.name, true)
			if apierrors.IsForbidden(a) != apierrors.IsForbidden(b) || (a == nil) != (b == nil) {
				t.Errorf("%s deletes %+v: %v, emulated %v", user, p, a, b)
			}
			if a != nil {
				denied++
			}
			for _, change := range []string{
				`{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`,
				`{"conditions":[{"type":"Ready","status":"Unknown","reason":"Because"}]}`,
				`{"conditions":[{"type":"Ready","$patch":"delete"}]}`,
				`{"conditions":[{"type":"ContainersReady","status":"False"}]}`,
				`{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager"}]}`,
				`{"conditions":null}`,
			} {
				a, b := patched(t, actual, p.name, change), patched(t, emulated, p.name, change)
				if a != b {
					t.Errorf("%s patches %+v by %s:\n%s, emulated\n%s", user, p, change, a, b)
				}
				if strings.Contains(change, `"Ready"`) && strings.Contains(a, "Ready=True") {
					kept++
				}
			}
		}
	}
	t.Logf("%d pods: %d deletions denied, %d pods kept ready", len(pods), denied, kept)
	if denied == 0 || kept == 0 {
		t.Error("the table shows nothing")
	}
	for _, name := range []string{contract.KeptNodes, contract.BoundNodes} {
		w.list(t, name, `{"e-kept":null,"e-bound":null}`)
	}
}

func keyOf(m map[string]string) string {
	for k := range m {
		return k
	}
	return ""
}

func createPod(t *testing.T, c kubernetes.Interface, a asked) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: a.name, Annotations: a.annotations},
		Spec:       corev1.PodSpec{NodeName: a.node, Containers: []corev1.Container{{Name: "c", Image: "example.com/i"}}},
	}
	p, err := c.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Conditions = a.conditions
	if _, err := c.CoreV1().Pods("default").UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// patched is what would come of a change of a pod's status: its conditions, or the error.
func patched(t *testing.T, c kubernetes.Interface, name, status string) string {
	t.Helper()
	p, err := c.CoreV1().Pods("default").Patch(t.Context(), name, types.StrategicMergePatchType,
		[]byte(`{"status":`+status+`}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
	if err != nil {
		return string(apierrors.ReasonForError(err))
	}
	seen := map[corev1.PodConditionType]string{}
	for _, x := range p.Status.Conditions {
		seen[x.Type] = fmt.Sprintf("%s=%s %s %s", x.Type, x.Status, x.Reason, x.LastTransitionTime.UTC().Format(time.RFC3339))
	}
	return fmt.Sprint(seen)
}
