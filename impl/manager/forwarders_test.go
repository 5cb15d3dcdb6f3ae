package manager

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
)

// TestForwardersGoOn: what cannot be written of one pool stops neither the other pools nor what takes a right away: who
// has left the pool whose Role is refused is bound no more.
func TestForwardersGoOn(t *testing.T) {
	const poisoned = "quay"
	node := func(name, pool string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{contract.NodePoolLabel: pool},
		}}
	}
	refuses := false
	refused := errors.New("refused")
	refusal := func(o client.Object) error {
		if _, role := o.(*rbacv1.Role); refuses && role && o.GetName() == contract.ForwarderRolePrefix+poisoned {
			return refused
		}
		return nil
	}
	left := node("quay-2", poisoned)
	store := fake.NewClientBuilder().WithScheme(kubescheme.Scheme).WithObjects(
		node("quay-1", poisoned), left, node("edge-1", "harbour")).Build()
	c := interceptor.NewClient(store, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := refusal(o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
	})
	f := &forwarders{client: c}
	keep := func(pool string) error {
		_, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
		return err
	}
	bound := func(pool string) (users []string) {
		t.Helper()
		var b rbacv1.RoleBinding
		at := client.ObjectKey{Namespace: contract.NodeLeaseNamespace, Name: contract.ForwarderRolePrefix + pool}
		if err := store.Get(t.Context(), at, &b); err != nil {
			t.Fatal(err)
		}
		for _, s := range b.Subjects {
			users = append(users, s.Name)
		}
		return users
	}
	if err := keep(poisoned); err != nil || len(bound(poisoned)) != 2 {
		t.Fatalf("before: %v, %v", err, bound(poisoned))
	}
	refuses = true
	if err := store.Delete(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if err := keep(poisoned); !errors.Is(err, refused) {
		t.Errorf("a Role that is refused: %v", err)
	}
	if users := bound(poisoned); len(users) != 1 || users[0] != contract.ForwarderUserPrefix+poisoned+":quay-1" {
		t.Errorf("bound beside a Role that is refused: %v", users)
	}
	if err := keep("harbour"); err != nil || len(bound("harbour")) != 1 {
		t.Errorf("another pool: %v, %v", err, bound("harbour"))
	}
}
