package renewals

import (
	"context"
	"errors"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
)

// TestStand: those that may lead a pool may write its report, one by one. What is refused keeps neither the rest nor
// another pool, and all of it goes with the last node.
func TestStand(t *testing.T) {
	node := func(name, pool string, leads bool) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{contract.NodePoolLabel: pool}}}
		if leads {
			n.Labels[contract.LeaderLabel] = "true"
		}
		return n
	}
	first := node("edge-1", "harbour", true)
	store := fake.NewClientBuilder().WithScheme(kubescheme.Scheme).WithObjects(
		first, node("edge-2", "harbour", false), node("quay-1", "quay", false), node("quay-2", "quay", false)).Build()
	refused := errors.New("refused")
	refuses := ""
	s := &stand{nodes: store, client: interceptor.NewClient(store, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, role := o.(*rbacv1.Role); role && o.GetName() == contract.HeardPrefix+refuses {
				return refused
			}
			return c.Create(ctx, o, opts...)
		},
	}), lease: func(ctx context.Context, pool string) (*coordinationv1.Lease, error) {
		l := &coordinationv1.Lease{}
		err := store.Get(ctx, heardOf(pool), l)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return l, err
	}}
	keep := func(pool string) error {
		_, err := s.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
		return err
	}
	bound := func(pool string) (users []string) {
		b := &rbacv1.RoleBinding{}
		if err := store.Get(t.Context(), heardOf(pool), b); err != nil {
			return []string{err.Error()}
		}
		for _, s := range b.Subjects {
			users = append(users, s.Kind+" "+s.Name)
		}
		return users
	}
	refuses = "quay"
	if err := keep("quay"); !errors.Is(err, refused) {
		t.Errorf("a Role that is refused: %v", err)
	}
	both := []string{"User weir:forwarder:quay:quay-1", "User weir:forwarder:quay:quay-2"}
	if users := bound("quay"); !slices.Equal(users, both) {
		t.Errorf("bound beside a Role that is refused: %v", users)
	}
	for range 2 { // the second time nothing is left to do
		if err := keep("harbour"); err != nil {
			t.Fatal(err)
		}
	}
	if users := bound("harbour"); !slices.Equal(users, []string{"User weir:forwarder:harbour:edge-1"}) {
		t.Errorf("bound where one has the label of leaders: %v", users)
	}
	role := &rbacv1.Role{}
	if err := store.Get(t.Context(), heardOf("harbour"), role); err != nil || len(role.Rules) != 1 ||
		!slices.Equal(role.Rules[0].Verbs, []string{"patch"}) ||
		!slices.Equal(role.Rules[0].ResourceNames, []string{"weir-heard-harbour"}) {
		t.Errorf("may %+v, %v", role.Rules, err)
	}
	for _, n := range []*corev1.Node{first, node("edge-2", "harbour", false)} {
		if err := store.Delete(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := keep("harbour"); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []client.Object{&coordinationv1.Lease{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		if err := store.Get(t.Context(), heardOf("harbour"), o); !apierrors.IsNotFound(err) {
			t.Errorf("a pool without nodes has %T: %v", o, err)
		}
	}
}
