package removal

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	managedLabel = "app.kubernetes.io/managed-by"
	managedBy    = "weir-manager"
	// named are the nodes that a refusal names.
	named = 5
	// page bounds what one answer of the API holds.
	page = 500
)

// Check is an error while nodes are in pools: their kubelets call hubs, and hubs live by what weir-manager signs and publishes.
func Check(ctx context.Context, c client.Reader) error {
	var nodes metav1.PartialObjectMetadataList
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	var first []string
	count := 0
	err := pages(ctx, c, &nodes, client.HasLabels{contract.NodePoolLabel}, func() error {
		count += len(nodes.Items)
		for _, n := range nodes.Items[:min(len(nodes.Items), named-len(first))] {
			first = append(first, n.Name)
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("list nodes of pools: %w", err)
	case count == 0:
		return nil
	}
	more := ""
	if count > len(first) {
		more = fmt.Sprintf(" and %d more", count-len(first))
	}
	return fmt.Errorf("%d nodes are still in pools (%s%s), and their kubelets may call a hub: take each out first "+
		"(kubectl label node NODE %s-), then uninstall again; helm uninstall --no-hooks does not ask", count, strings.Join(first, ", "), more, contract.NodePoolLabel)
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
}

// Clean removes what weir-manager made. Something that it may not remove does not keep the rest.
func Clean(ctx context.Context, c client.Client) error {
	var errs []error
	for _, m := range made {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(m.kind.GroupVersion().WithKind(m.kind.Kind + "List"))
		var each []metav1.PartialObjectMetadata
		err := pages(ctx, c, &list, both{client.MatchingLabels{managedLabel: managedBy}, client.InNamespace(m.namespace)}, func() error {
			each = append(each, list.Items...)
			return nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("list each %s of weir-manager: %w", m.kind.Kind, err))
		}
		for i := range each {
			each[i].SetGroupVersionKind(m.kind)
			errs = append(errs, gone(c.Delete(ctx, &each[i])))
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: managedBy}}
	return errors.Join(append(errs, gone(c.Delete(ctx, lease)))...)
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
func pages(ctx context.Context, c client.Reader, list *metav1.PartialObjectMetadataList, which client.ListOption, each func() error) error {
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
