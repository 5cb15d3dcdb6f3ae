package workload

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/client"
)

// widgetText is the content of a Widget beside its size, in bytes.
const widgetText = 400

// InstallWidgets makes the cloud serve Widgets, which all ServiceAccounts may read.
func InstallWidgets(ctx context.Context, admin *rest.Config) error {
	objects, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	crds := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	group := client.WidgetVersion.Group
	if _, err := objects.Resource(crds).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": client.Widgets + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": client.Widgets, "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": client.WidgetVersion.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": map[string]any{
						"type": "object", "properties": map[string]any{
							"size": map[string]any{"type": "integer"}, "text": map[string]any{"type": "string"},
						},
					},
				}}},
			}},
		},
	}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("install widgets: %w", err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "widget-readers"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{group}, Resources: []string{client.Widgets}, Verbs: []string{"get", "list", "watch"}},
		},
	}
	if _, err := api.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("install widgets: %w", err)
	}
	if _, err := api.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name,
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts"}},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("install widgets: %w", err)
	}
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		if _, err = objects.Resource(client.WidgetVersion.WithResource(client.Widgets)).List(
			ctx, metav1.ListOptions{Limit: 1}); err == nil {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the cloud does not serve widgets: %w: %w", ctx.Err(), err)
		}
	}
}

// FillWidgets writes so many Widgets into a cloud that has none.
func FillWidgets(ctx context.Context, admin *rest.Config, seed int64, n int) error {
	admin = rest.CopyConfig(admin)
	admin.QPS = -1
	objects, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	random := newRandom(seed, streamContent)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range n {
		var text strings.Builder
		for text.Len() < widgetText {
			fmt.Fprintf(&text, "%08x ", random.IntN(1<<31))
		}
		g.Go(func() error {
			name := fmt.Sprintf("widget-%04d", i)
			_, err := objects.Resource(client.WidgetVersion.WithResource(client.Widgets)).Namespace(metav1.NamespaceDefault).
				Create(ctx, &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": client.WidgetVersion.String(), "kind": "Widget", "metadata": map[string]any{"name": name},
					"spec": map[string]any{"size": int64(i), "text": text.String()},
				}}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("fill %s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}
