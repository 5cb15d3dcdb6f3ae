package revocation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
)

// RolePrefix and the name of a pool are a Role and a RoleBinding in contract.KeyNamespace.
const RolePrefix = "weir-pool-"

// grant lets the nodes of a pool, each by its users, read whom to trust and whom not. It is bound to no group: who is deleted has lost it.
func grant(ctx context.Context, r *Config, pool string, nodes []string) error {
	meta := metav1.ObjectMeta{Namespace: contract.KeyNamespace, Name: RolePrefix + pool, Labels: map[string]string{"app.kubernetes.io/part-of": "weir"}}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps"}, Verbs: []string{"get", "watch"},
		ResourceNames: []string{contract.DenylistPrefix + pool, "pool-" + pool},
	}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}
	for _, n := range nodes {
		for _, user := range []string{contract.NodeUserPrefix + n, contract.HubUserPrefix + pool + ":" + n} {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
		}
	}
	var haveRole rbacv1.Role
	err := put(ctx, r, role, &haveRole, func() bool { return equality.Semantic.DeepEqual(haveRole.Rules, role.Rules) })
	var haveBinding rbacv1.RoleBinding
	if err == nil {
		err = put(ctx, r, binding, &haveBinding, func() bool { return equality.Semantic.DeepEqual(haveBinding.Subjects, binding.Subjects) })
	}
	return err
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
