package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/revocation"
)

// granter lets the hubs of a pool read what their NodePool shares: a ClusterRole for the pool, and a binding that names
// the users of its hubs one by one. A hub that leaves the pool has lost it. If the NodePool goes while the pool has
// nodes, its hubs go on as they were, and so does the role.
type granter struct {
	client client.Client
	reader client.Reader     // not from the cache
	last   map[string]string // by pool, what was granted last, or nothing
}

// keep makes role and binding what they should be. They are looked at when the scope or the nodes change, and after a
// start.
func (g *granter) keep(ctx context.Context, v *view) error {
	names := []string{}
	for i := range v.nodes {
		names = append(names, v.nodes[i].Name)
	}
	slices.Sort(names)
	asked := fmt.Sprint(v.nodepool != nil, v.scope.shared, names)
	if g.last[v.name] == asked {
		return nil
	}
	role := revocation.ScopeRole + ":" + v.name
	var err error
	switch {
	case len(names) == 0 || v.nodepool != nil && len(v.scope.shared) == 0:
		err = errors.Join(
			g.remove(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}}),
			g.remove(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}}),
		)
	case v.nodepool != nil:
		// who left loses the binding in any case.
		err = errors.Join(g.putRole(ctx, role, v.scope), g.putBinding(ctx, role, v.name, names, true))
	default:
		err = g.putBinding(ctx, role, v.name, names, false)
	}
	if err != nil {
		return fmt.Errorf("what hubs of pool %s may read: %w", v.name, err)
	}
	if len(names) == 0 && v.nodepool == nil {
		delete(g.last, v.name)
	} else {
		g.last[v.name] = asked
	}
	return nil
}

// rules are to list and watch what a pool shares.
func rules(s scope) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, name := range s.shared {
		part := strings.SplitN(name, "/", 3)
		all = append(all, rbacv1.PolicyRule{
			APIGroups: []string{part[0]}, Resources: []string{part[2]}, Verbs: []string{"list", "watch"},
		})
	}
	return all
}

func (g *granter) putRole(ctx context.Context, name string, s scope) error {
	want := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{
				contract.ManagedLabel: contract.ManagedBy, "app.kubernetes.io/part-of": "weir",
			},
		}, Rules: rules(s),
	}
	have := &rbacv1.ClusterRole{}
	err := g.reader.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err):
		return g.client.Create(ctx, want)
	case err != nil || equality.Semantic.DeepEqual(have.Rules, want.Rules):
		return err
	}
	have.Rules = want.Rules
	return g.client.Update(ctx, have)
}

// putBinding keeps the subjects of the binding, and makes it if it may.
func (g *granter) putBinding(ctx context.Context, role, pool string, nodes []string, make bool) error {
	want := revocation.Binding(revocation.ScopeRole, pool, nodes)
	want.RoleRef.Name = role
	have := &rbacv1.ClusterRoleBinding{}
	err := g.reader.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err) && make:
		return g.client.Create(ctx, want)
	case apierrors.IsNotFound(err):
		return nil
	case err != nil || equality.Semantic.DeepEqual(have.Subjects, want.Subjects):
		return err
	}
	have.Subjects = want.Subjects
	return g.client.Update(ctx, have)
}

// remove deletes what there is. It is read before, as a delete is a write.
func (g *granter) remove(ctx context.Context, o client.Object) error {
	err := g.reader.Get(ctx, client.ObjectKeyFromObject(o), o)
	if err == nil {
		err = g.client.Delete(ctx, o)
	}
	return client.IgnoreNotFound(err)
}
