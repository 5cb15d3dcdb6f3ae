package managertest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	nodeController = "system:serviceaccount:kube-system:node-controller"
	sharedUser     = "system:kube-controller-manager"
	replicaSets    = "system:serviceaccount:kube-system:replicaset-controller"
)

var accounts = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}

// markNotReady does to a pod what the node lifecycle controller does, or only asks what would come of it.
func markNotReady(t *testing.T, c kubernetes.Interface, name string, dryRun ...string) (*corev1.Pod, error) {
	t.Helper()
	p, err := c.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			p.Status.Conditions[i].Status = corev1.ConditionFalse
			p.Status.Conditions[i].LastTransitionTime = metav1.Now()
		}
	}
	return c.CoreV1().Pods("default").UpdateStatus(t.Context(), p, metav1.UpdateOptions{DryRun: dryRun})
}

// markEvicted does what taint eviction does before it deletes a pod.
func markEvicted(t *testing.T, c kubernetes.Interface, name string) {
	t.Helper()
	p, err := c.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
		LastTransitionTime: metav1.Now(),
	})
	if _, err := c.CoreV1().Pods("default").UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c kubernetes.Interface, name string, dryRun bool) error {
	t.Helper()
	o := metav1.DeleteOptions{}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return c.CoreV1().Pods("default").Delete(t.Context(), name, o)
}

// testPolicies holds the admission policies to what they promise, with lists written by the test.
func testPolicies(t *testing.T, w *world) {
	w.nodes(t, "policies", "p-kept", "p-bound", "p-free")
	w.pod(t, "on-kept", "p-kept", nil)
	w.pod(t, "marked-on-kept", "p-kept", nil)
	w.pod(t, "on-bound", "p-bound", nil)
	w.pod(t, "on-free", "p-free", nil)
	w.pod(t, "bound-itself", "p-free", map[string]string{contract.BindingAnnotation: "true"})
	// which needs more grants than it has by default, to act for all.
	stock, shared := w.as(nodeController, accounts...), w.as(sharedUser, "system:masters")
	markEvicted(t, stock, "marked-on-kept")
	w.list(t, contract.KeptNodes, `{"p-kept":"policies"}`)
	w.list(t, contract.BoundNodes, `{"p-bound":"policies"}`)
	w.eventually(t, "the policies are in force", func() bool {
		p, err := markNotReady(t, stock, "on-kept", metav1.DryRunAll)
		return err == nil && ready(p) && apierrors.IsForbidden(remove(t, stock, "on-kept", true)) &&
			apierrors.IsForbidden(remove(t, stock, "on-bound", true)) // kube-apiserver hears of each list by itself
	})

	for _, c := range []struct {
		who    string
		client kubernetes.Interface
		pod    string
		denied bool
	}{
		{"node controllers", stock, "on-kept", true},
		{"node controllers", stock, "on-bound", true},
		{"node controllers", stock, "bound-itself", true},
		{"node controllers", stock, "on-free", false},
		{"all controllers as one user, taint eviction", shared, "marked-on-kept", true},
		{"all controllers as one user, another one", shared, "on-kept", false},
		{"another controller", w.as(replicaSets, accounts...), "on-kept", false},
		{"a person", w.client, "on-kept", false},
		{"a person", w.client, "bound-itself", false},
	} {
		if err := remove(t, c.client, c.pod, true); apierrors.IsForbidden(err) != c.denied || err != nil && !c.denied {
			t.Errorf("%s delete pod %s: %v, want denied: %v", c.who, c.pod, err, c.denied)
		}
	}

	before := w.getPod(t, "on-kept")
	if _, err := markNotReady(t, stock, "on-kept"); err != nil {
		t.Errorf("what is denied is tried again and again: %v", err)
	}
	if after := w.getPod(t, "on-kept"); !ready(after) || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the node lifecycle controller changed a pod of a kept node: %+v", after.Status)
	}
	if _, err := markNotReady(t, shared, "on-kept"); err != nil || !ready(w.getPod(t, "on-kept")) {
		t.Errorf("the same as another user: %v", err)
	}
	for _, name := range []string{"on-bound", "on-free"} {
		if _, err := markNotReady(t, stock, name); err != nil || ready(w.getPod(t, name)) {
			t.Errorf("pod %s of a node that is not kept should be not ready: %v", name, err)
		}
	}
	if _, err := markNotReady(t, w.client, "on-kept"); err != nil || ready(w.getPod(t, "on-kept")) {
		t.Errorf("a kubelet, or a person, should make a pod not ready: %v", err)
	}

	w.list(t, contract.KeptNodes, `{"p-kept":null}`)
	w.list(t, contract.BoundNodes, `{"p-bound":null}`)
	w.eventually(t, "evicting is allowed once the node is listed no more",
		func() bool { return remove(t, stock, "on-kept", true) == nil })
}
