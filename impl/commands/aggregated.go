package commands

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// aggregated reads, so many at a time, which APIs another server than kube-apiserver answers, as version.group.
func aggregated(ctx context.Context, c client.Reader, page int64) (map[string]bool, error) {
	out := map[string]bool{}
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIServiceList",
	})
	for more := ""; ; {
		switch err := c.List(ctx, all, client.Limit(page), client.Continue(more)); {
		case meta.IsNoMatchError(err): // it has no such servers
			return out, nil
		case err != nil:
			return nil, err
		}
		for _, o := range all.Items {
			if _, found, err := unstructured.NestedMap(o.Object, "spec", "service"); err == nil && found {
				out[o.GetName()] = true
			}
		}
		if more = all.GetContinue(); more == "" {
			return out, nil
		}
	}
}
