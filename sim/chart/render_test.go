package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
)

func name(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// TestSameAsPrinted: with its usual values the chart has every object that weir-manager prints, and the same in it, but
// for the image and what a chart adds.
func TestSameAsPrinted(t *testing.T) {
	rendered := map[string]*unstructured.Unstructured{}
	for _, o := range objects(t, findHelm(t).template(t, "--no-hooks")) {
		rendered[name(o)] = o
	}
	printed := objects(t, manifests.All())
	if len(printed) < 30 {
		t.Fatalf("%d objects", len(printed))
	}
	for _, want := range printed {
		got := rendered[name(want)]
		if got == nil {
			t.Errorf("the chart lacks %s", name(want))
			continue
		}
		switch want.GetKind() {
		case "ConfigMap":
			// As with the Deployment: whoever installs says where images are.
			for list, is := range map[string][2]string{
				contract.InstallerImages:   {contract.InstallerImagesKey, "weir-installer"},
				contract.CoordinatorImages: {contract.CoordinatorImagesRelease, "weir-coordinator"},
			} {
				if want.GetName() == list {
					data, _, _ := unstructured.NestedStringMap(got.Object, "data")
					if delete(got.Object, "data"); len(data) != 1 || !strings.HasPrefix(data[is[0]], "ghcr.io/weir-edge/"+is[1]+":") {
						t.Errorf("ConfigMap %s says %q", list, data)
					}
				}
			}
		case "CustomResourceDefinition":
			unstructured.RemoveNestedField(got.Object, "metadata", "annotations", "helm.sh/resource-policy")
		case "Deployment":
			for _, field := range []string{"topologySpreadConstraints", "imagePullSecrets"} {
				unstructured.RemoveNestedField(got.Object, "spec", "template", "spec", field)
			}
			for _, o := range []*unstructured.Unstructured{got, want} {
				each, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
				delete(each[0].(map[string]any), "image")
				delete(each[0].(map[string]any), "imagePullPolicy")
				_ = unstructured.SetNestedSlice(o.Object, each, "spec", "template", "spec", "containers")
			}
		}
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("%s, printed (-) and in the chart (+):\n%s", name(want), diff)
		}
	}
}

// TestStrictDryRun: a real kube-apiserver takes every object of every value file, and knows each of its fields.
func TestStrictDryRun(t *testing.T) {
	h := findHelm(t)
	files, err := filepath.Glob(filepath.Join(h.chart, "../helm/testdata/*.values.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	c := newCluster(t)
	// a dry run makes no namespace for what comes after it.
	for _, n := range []string{namespace, "weir-pki", "monitoring"} {
		if _, err := c.client.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	install(t, c, filepath.Join(h.chart, "../helm/testdata/operator"))
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".values.yaml"), func(t *testing.T) {
			all := objects(t, h.template(t, "-f", file, "--api-versions", "monitoring.coreos.com/v1/PodMonitor",
				"--api-versions", "monitoring.coreos.com/v1/PrometheusRule"))
			if len(all) < 20 {
				t.Fatalf("%d objects", len(all))
			}
			for _, o := range all {
				dryRun(t, c, o)
			}
		})
	}
	t.Run("a field that nobody knows", func(t *testing.T) {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": namespace},
			"dataa": map[string]any{},
		}}
		if err := try(t, c, o); err == nil || !strings.Contains(err.Error(), "dataa") {
			t.Errorf("it passed: %v", err)
		}
	})
}

func dryRun(t *testing.T, c *cluster, o *unstructured.Unstructured) {
	t.Helper()
	if err := try(t, c, o); err != nil {
		t.Errorf("%s: %v", name(o), err)
	}
}

// try applies an object on the server's side, strictly, and leaves nothing.
func try(t *testing.T, c *cluster, o *unstructured.Unstructured) error {
	t.Helper()
	data, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	force := true
	_, err = c.resource(t, o).Patch(t.Context(), o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: "weir-test", Force: &force, DryRun: []string{metav1.DryRunAll},
		FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// install applies the files of a folder, which are definitions, and waits until they are served.
func install(t *testing.T, c *cluster, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), data); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() string {
		list, err := c.disco.ServerResourcesForGroupVersion("monitoring.coreos.com/v1")
		if err != nil || len(list.APIResources) < 2 {
			return "the definitions of the Prometheus operator are served"
		}
		return ""
	})
}

// TestBadValues: helm refuses what is invalid, and names it.
func TestBadValues(t *testing.T) {
	h := findHelm(t)
	for set, want := range map[string]string{
		"manager.replicas=0":                "manager/replicas",
		"manager.replicas=many":             "manager/replicas",
		"manager.image.digest=sha256:12":    "manager/image/digest",
		"manager.image.pullPolicy=Sometime": "manager/image/pullPolicy",
		"manager.image.tags=v1":             "'tags'",
		"manager.extraArgs={metrics}":       "manager/extraArgs/0",
		"managers.replicas=2":               "'managers'",
		"installer.enabled=perhaps":         "installer/enabled",
		"installer.image.digest=sha256:12":  "installer/image/digest",
		"installer.image.pullPolicy=Never":  "'pullPolicy'",
		"registry=https://registry.example": "registry",
		"crds.nodePools=perhaps":            "crds/nodePools",
		"uninstall.timeoutSeconds=1":        "uninstall/timeoutSeconds",
		"metrics.podMonitor.interval=often": "metrics/podMonitor/interval",
		"gate.enabled=true":                 "gate.address is empty: want the host:port",
		"gate.address=gate.example":         "gate/address",
		"gate.service.type=ExternalName":    "gate/service/type",
		"gate.tls.secret=theirs":            "'secret'",
	} {
		_, err := h.run(t.Context(), "template", release, h.chart, "--set", set)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: %v, want %q", set, err, want)
		}
	}
	if _, err := h.run(t.Context(), "template", release, h.chart, "--kube-version", "1.35.0"); err == nil ||
		!strings.Contains(err.Error(), ">=1.36.0-0") {
		t.Errorf("on a cluster that is too old: %v", err)
	}
}
