package renewals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
)

// lag is after which a cache should have heard of what was written.
const lag = 100 * time.Millisecond

// stand keeps, for each pool that has nodes, the Lease of its reports, with a Role and a RoleBinding of the same name
// by which those that may lead the pool patch it. A request is the name of a pool.
type stand struct {
	nodes client.Reader // from a cache
	// of Leases of pools, from a cache; nil without an error: there is none.
	lease  func(ctx context.Context, pool string) (*coordinationv1.Lease, error)
	client client.Client // its reads are from no cache
}

// Reconcile implements reconcile.Reconciler.
func (s *stand) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var nodes corev1.NodeList
	if err := s.nodes.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: r.Name}); err != nil {
		return reconcile.Result{}, err
	}
	err := s.keep(ctx, r.Name, nodes.Items)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: lag}, nil
	}
	return reconcile.Result{}, err
}

func (s *stand) keep(ctx context.Context, pool string, nodes []corev1.Node) error {
	meta := metav1.ObjectMeta{Namespace: contract.KeyNamespace, Name: contract.HeardPrefix + pool}
	// Without labels: all metadata come back with each report.
	lease := &coordinationv1.Lease{ObjectMeta: meta}
	if len(nodes) == 0 {
		return errors.Join(
			s.remove(ctx, &rbacv1.RoleBinding{ObjectMeta: meta}), s.remove(ctx, &rbacv1.Role{ObjectMeta: meta}),
			s.remove(ctx, lease))
	}
	is, err := s.lease(ctx, pool)
	if err == nil && is == nil {
		err = s.client.Create(ctx, lease)
	}
	if err != nil {
		err = fmt.Errorf("lease of the reports of pool %s: %w", pool, err)
	}
	return errors.Join(err, Grant(ctx, s.client, meta, "the leaders of pool "+pool, rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{meta.Name},
		Verbs: []string{"patch"},
	}, Leaders(pool, nodes)))
}

func (s *stand) remove(ctx context.Context, o client.Object) error {
	return client.IgnoreNotFound(s.client.Delete(ctx, o))
}

// Grant lets users do what a rule says, by a Role and a RoleBinding of the same name. Who may not any more loses the
// binding, also if the Role cannot be written. what names them in errors.
func Grant(ctx context.Context, c client.Client, meta metav1.ObjectMeta, what string, rule rbacv1.PolicyRule,
	users []rbacv1.Subject) error {
	role, binding := &rbacv1.Role{ObjectMeta: meta}, &rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy()}
	_, err := controllerutil.CreateOrUpdate(ctx, c, role, func() error {
		metav1.SetMetaDataLabel(&role.ObjectMeta, contract.ManagedLabel, contract.ManagedBy)
		role.Rules = []rbacv1.PolicyRule{rule}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("role of %s: %w", what, err)
	}
	if _, failed := controllerutil.CreateOrUpdate(ctx, c, binding, func() error {
		metav1.SetMetaDataLabel(&binding.ObjectMeta, contract.ManagedLabel, contract.ManagedBy)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
		binding.Subjects = users
		return nil
	}); failed != nil {
		err = errors.Join(err, fmt.Errorf("binding of %s: %w", what, failed))
	}
	return err
}

// Leaders are the users by which those nodes of a pool write at kube-apiserver for others that may lead it: the Nodes
// with the label of leaders or, where none has it, all. No group is among them: a user who is deleted may nothing more.
func Leaders(pool string, nodes []corev1.Node) (users []rbacv1.Subject) {
	var all, leaders []string
	for _, n := range nodes {
		if all = append(all, n.Name); n.Labels[contract.LeaderLabel] == "true" {
			leaders = append(leaders, n.Name)
		}
	}
	if len(leaders) == 0 {
		leaders = all
	}
	slices.Sort(leaders)
	for _, n := range leaders {
		users = append(users, rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: contract.ForwarderUserPrefix + pool + ":" + n,
		})
	}
	return users
}
