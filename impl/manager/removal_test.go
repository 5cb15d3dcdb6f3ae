package manager

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weir-edge/weir/impl/contract"
)

// TestRemovable: Weir stays while a node is in a pool, and while one has no label any more and still calls its hub.
func TestRemovable(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(kubescheme.Scheme).Build()
	node := func(name, pool string, joined corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if pool != "" {
			n.Labels = map[string]string{contract.NodePoolLabel: pool}
		}
		if joined != "" {
			n.Status.Conditions = []corev1.NodeCondition{{Type: contract.JoinedCondition, Status: joined}}
		}
		return n
	}
	for _, n := range []*corev1.Node{node("cloud", "", ""), node("undone", "", corev1.ConditionFalse)} {
		if err := c.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkRemovable(t.Context(), c); err != nil {
		t.Error(err)
	}
	for i, n := range []*corev1.Node{node("leaves", "", corev1.ConditionTrue), node("labelled", "harbour", "")} {
		if err := c.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if err := checkRemovable(t.Context(), c); err == nil ||
			!strings.HasPrefix(err.Error(), fmt.Sprint(i+1, " nodes are still in pools or have not left their hubs yet (")) ||
			!strings.Contains(err.Error(), n.Name) {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
}

// TestRemoveMade: Jobs of weir-manager and the Pods of its coordinators go, and in the end the grants by which they may
// be removed. What others have stays.
func TestRemoveMade(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(kubescheme.Scheme).Build()
	ours, theirs := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: contract.ManagerNamespace, Name: "weir-installer-1",
			Labels: map[string]string{contract.ManagedLabel: contract.ManagedBy},
		},
	},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: "theirs"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: "weir-coordinator-1", Labels: ours.Labels},
	}
	every := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: hook}}
	here := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: hook}}
	for _, j := range []client.Object{ours, theirs, pod, every, here} {
		if err := c.Create(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeMade(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{ours, pod, every, here} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%s is left: %v", o.GetName(), err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("a Job of somebody else: %v", err)
	}
}
