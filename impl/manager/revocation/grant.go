package revocation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
)

// RolePrefix and the name of a pool are a Role and a RoleBinding in contract.KeyNamespace. With returnSuffix they are
// those by which hubs give back what the cluster has forgotten: a name of a pool has no colon.
const (
	RolePrefix   = "weir-pool-"
	returnSuffix = ":return"
)

// Roles of hubs that are bound for all namespaces. The operator of the cluster applies them, and may add the resources
// that his pools share.
const (
	HubRole      = "weir:hub"          // what relays hold
	TopologyRole = "weir:hub-topology" // to list Nodes, for pools whose binding somebody has made
	ScopeRole    = "weir:hub-scope"    // with the name of a pool: what its NodePool shares; kept by package pools
)

// Binding binds such a role to the hubs of a pool, each by its own user. It is bound to no group: who is deleted, or
// moved, has lost it.
func Binding(role, pool string, nodes []string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: role + ":" + pool, Labels: map[string]string{
				"app.kubernetes.io/part-of": "weir", contract.ManagedLabel: contract.ManagedBy,
			},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, n := range nodes {
		b.Subjects = append(b.Subjects, user(contract.HubUserPrefix+pool+":"+n))
	}
	return b
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// PoolOf is the pool of a Binding, by its name; "": it is none.
func PoolOf(binding string) string {
	for _, role := range []string{HubRole, TopologyRole} {
		if pool, ok := strings.CutPrefix(binding, role+":"); ok {
			return pool
		}
	}
	return ""
}

// Grant lets the hubs of a pool read what relays hold, and its nodes, each by its users, whom to trust and whom not. It
// needs Client and Reader alone.
func Grant(ctx context.Context, r *Config, pool string, nodes []string) error {
	return errors.Join(grantReads(ctx, r, pool, nodes), grantTrust(ctx, r, pool, nodes))
}

// grantReads keeps the subjects of the pool's Bindings. That of topology is kept if it is there. One that cannot be
// written does not keep the other.
func grantReads(ctx context.Context, r *Config, pool string, nodes []string) error {
	var errs []error
	for _, role := range []string{HubRole, TopologyRole} {
		want, have := Binding(role, pool, nodes), &rbacv1.ClusterRoleBinding{}
		if role == TopologyRole {
			switch err := r.Reader.Get(ctx, client.ObjectKeyFromObject(want), have); {
			case apierrors.IsNotFound(err):
				continue
			case err != nil:
				errs = append(errs, fmt.Errorf("ClusterRoleBinding %s: %w", want.Name, err))
				continue
			}
		}
		errs = append(errs, put(ctx, r, want, have, func() bool {
			return equality.Semantic.DeepEqual(have.Subjects, want.Subjects)
		}))
	}
	return errors.Join(errs...)
}

// grantTrust keeps what nodes of the pool may read beside the pool's authority, and the one thing that its hubs may
// write.
func grantTrust(ctx context.Context, r *Config, pool string, nodes []string) error {
	rule := func(verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"}, Verbs: verbs, ResourceNames: names,
		}
	}
	var users, hubs []rbacv1.Subject
	for _, n := range nodes {
		hub := user(contract.HubUserPrefix + pool + ":" + n)
		users, hubs = append(users, user(contract.NodeUserPrefix+n), hub), append(hubs, hub)
	}
	return errors.Join(
		grantIn(ctx, r, RolePrefix+pool,
			rule([]string{"get", "watch"}, contract.DenylistPrefix+pool, contract.AuthorityPrefix+pool), users),
		returnable(ctx, r, pool),
		grantIn(ctx, r, RolePrefix+pool+returnSuffix, rule([]string{"get", "update"}, contract.ReturnedPrefix+pool), hubs),
	)
}

// returnable makes the ConfigMap in which hubs give back what this cluster has forgotten.
func returnable(ctx context.Context, r *Config, pool string) error {
	kept, err := notes(ctx, r.Reader, contract.KeyNamespace, contract.ReturnedPrefix+pool)
	if err != nil || kept.ResourceVersion != "" {
		return err
	}
	metav1.SetMetaDataLabel(&kept.ObjectMeta, "app.kubernetes.io/part-of", "weir")
	if err := r.Client.Create(ctx, kept); err != nil {
		return fmt.Errorf("make ConfigMap %s/%s: %w", kept.Namespace, kept.Name, err)
	}
	return nil
}

// grantIn keeps a Role in contract.KeyNamespace and whom it is bound to: who left loses that also where the Role cannot
// be written.
func grantIn(ctx context.Context, r *Config, name string, rule rbacv1.PolicyRule, to []rbacv1.Subject) error {
	meta := metav1.ObjectMeta{
		Namespace: contract.KeyNamespace, Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "weir"},
	}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: *meta.DeepCopy(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: to,
	}
	var haveRole rbacv1.Role
	var haveBinding rbacv1.RoleBinding
	return errors.Join(
		put(ctx, r, role, &haveRole, func() bool { return equality.Semantic.DeepEqual(haveRole.Rules, role.Rules) }),
		put(ctx, r, binding, &haveBinding, func() bool {
			return equality.Semantic.DeepEqual(haveBinding.Subjects, binding.Subjects)
		}),
	)
}

// put creates an object or makes it what it should be. have is filled with what there is.
func put(ctx context.Context, r *Config, want, have client.Object, same func() bool) error {
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err):
		err = r.Client.Create(ctx, want)
	case err == nil && !same():
		want.SetResourceVersion(have.GetResourceVersion())
		err = r.Client.Update(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("%T %s/%s: %w", want, want.GetNamespace(), want.GetName(), err)
	}
	return nil
}
