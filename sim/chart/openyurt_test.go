package chart

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-edge/weir/impl/manager/manifests"
)

// TestBesideOpenYurt: where somebody else defines NodePools, the release leaves that definition as it is, also when it
// goes.
func TestBesideOpenYurt(t *testing.T) {
	h, c := findHelm(t), newCluster(t)
	h.kubeconfig = c.admin(t)
	if err := c.Apply(t.Context(), []byte(manifests.NodePools())); err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	pools := c.resource(t, definition)
	before, err := pools.Get(t.Context(), "nodepools.apps.openyurt.io", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := h.run(t.Context(), "install", release, h.chart, "--namespace", namespace, "--create-namespace", "--set",
		"crds.keep=false"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := h.run(t.Context(), "uninstall", release, "--namespace", namespace, "--no-hooks"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	after, err := pools.Get(t.Context(), "nodepools.apps.openyurt.io", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() ||
		len(after.GetManagedFields()) > len(before.GetManagedFields())+1 {
		t.Errorf("it was touched: %v", after.Object["metadata"])
	}
	for key := range after.GetAnnotations() {
		if strings.HasPrefix(key, "meta.helm.sh/") {
			t.Errorf("it has %s", key)
		}
	}
	if _, err := c.client.AppsV1().Deployments("kube-system").Get(t.Context(), "weir-manager",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("weir-manager is still there: %v", err)
	}
}
