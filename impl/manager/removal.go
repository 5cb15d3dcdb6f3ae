package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	// named are the nodes that a refusal names.
	named = 5
	// page bounds what one answer of the API holds.
	page = 500
)

// checkRemovable is an error while nodes are in pools, or call hubs all the same: hubs live by what weir-manager signs
// and publishes, and nobody else lets nodes leave.
func checkRemovable(ctx context.Context, c client.Reader) error {
	var first []string
	count := 0
	for next := ""; ; {
		var nodes corev1.NodeList
		if err := c.List(ctx, &nodes, client.Limit(page), client.Continue(next)); err != nil {
			return fmt.Errorf("list nodes of pools: %w", err)
		}
		for i := range nodes.Items {
			if n := &nodes.Items[i]; n.Labels[contract.NodePoolLabel] != "" || joined(n) {
				if count++; count <= named {
					first = append(first, n.Name)
				}
			}
		}
		if next = nodes.Continue; next == "" {
			break
		}
	}
	if count == 0 {
		return nil
	}
	more := ""
	if count > len(first) {
		more = fmt.Sprintf(" and %d more", count-len(first))
	}
	return fmt.Errorf("%d nodes are still in pools or have not left their hubs yet (%s%s): take each out first "+
		"(kubectl label node NODE %s-), wait until their condition %s is gone, then uninstall again; helm uninstall "+
		"--no-hooks does not ask",
		count, strings.Join(first, ", "), more, contract.NodePoolLabel, contract.JoinedCondition)
}

func joined(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == contract.JoinedCondition && c.Status == corev1.ConditionTrue
	})
}

// made are the kinds of what weir-manager makes, with its label, and where.
var made = []struct {
	kind      schema.GroupVersionKind
	namespace string // empty: none, or all
}{
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), ""},
	{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), contract.NodeLeaseNamespace},
	{rbacv1.SchemeGroupVersion.WithKind("Role"), contract.NodeLeaseNamespace},
	{discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), contract.ManagerNamespace},
	{corev1.SchemeGroupVersion.WithKind("Endpoints"), contract.ManagerNamespace},
	{corev1.SchemeGroupVersion.WithKind("Service"), contract.ManagerNamespace},
	{batchv1.SchemeGroupVersion.WithKind("Job"), contract.ManagerNamespace},
	{corev1.SchemeGroupVersion.WithKind("Pod"), contract.ManagerNamespace}, // of coordinators
}

// hook is what grants the right to do so, by the chart, in the namespaces below and for all.
const hook = "weir-after-uninstall"

// removeMade removes what weir-manager made, and in the end the grants by which it may. Something that it may not
// remove does not keep the rest.
func removeMade(ctx context.Context, c client.Client) error {
	var errs []error
	for _, m := range made {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(m.kind.GroupVersion().WithKind(m.kind.Kind + "List"))
		var each []metav1.PartialObjectMetadata
		err := pages(ctx, c, &list, both{
			client.MatchingLabels{contract.ManagedLabel: contract.ManagedBy}, client.InNamespace(m.namespace),
		}, func() error {
			each = append(each, list.Items...)
			return nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("list each %s of weir-manager: %w", m.kind.Kind, err))
		}
		for i := range each {
			each[i].SetGroupVersionKind(m.kind)
			errs = append(errs, gone(c.Delete(ctx, &each[i], client.PropagationPolicy(metav1.DeletePropagationBackground))))
		}
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: contract.ManagedBy},
	}
	errs = append(errs, gone(c.Delete(ctx, lease)))
	for _, namespace := range []string{contract.NodeLeaseNamespace, contract.ManagerNamespace} {
		errs = append(errs,
			gone(c.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: hook}})))
	}
	return errors.Join(
		append(errs, gone(c.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: hook}})))...)
}

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

type both struct {
	labels client.MatchingLabels
	in     client.InNamespace
}

// ApplyToList implements client.ListOption.
func (b both) ApplyToList(o *client.ListOptions) {
	b.labels.ApplyToList(o)
	b.in.ApplyToList(o)
}

// pages lists page by page, and calls each after each.
func pages(ctx context.Context, c client.Reader, list *metav1.PartialObjectMetadataList, which client.ListOption,
	each func() error) error {
	for next := ""; ; {
		kind := list.GroupVersionKind()
		if err := c.List(ctx, list, which, client.Limit(page), client.Continue(next)); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
		if next = list.Continue; next == "" {
			return nil
		}
		*list = metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
	}
}
