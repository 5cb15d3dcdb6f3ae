package managertest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/pool"
)

// openYurts is a definition of NodePools as OpenYurt installs it: it serves older versions by a webhook that does not
// run here, checks nothing itself, and drops what it does not know: all of the status that is Weir's own. That
// interConnectivity is immutable another webhook of OpenYurt says, for which a rule stands here.
func openYurts(t *testing.T) []byte {
	t.Helper()
	var crd map[string]any
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(manifests.NodePools(), "---\n")), &crd); err != nil {
		t.Fatal(err)
	}
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	delete(version, "additionalPrinterColumns")
	parts := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
	status := parts["status"].(map[string]any)
	known := status["properties"].(map[string]any)
	for _, own := range []string{"mode", "heardNodeNum", "cutOffNodeNum", "silentSince"} {
		if known[own] == nil {
			t.Fatalf("there is no status.%s", own)
		}
		delete(known, own)
	}
	delete(status, "required")
	text := map[string]any{"type": "string"}
	known["conditions"] = map[string]any{
		"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{
			"type": text, "status": text, "reason": text, "message": text,
			"lastTransitionTime": map[string]any{"type": "string", "format": "date-time"},
		}},
	}
	spec := parts["spec"].(map[string]any)
	rules := spec["x-kubernetes-validations"].([]any)
	spec["x-kubernetes-validations"] = []any{}
	for _, r := range rules {
		if strings.HasPrefix(r.(map[string]any)["message"].(string), "interConnectivity") {
			spec["x-kubernetes-validations"] = []any{r}
		}
	}
	fields := spec["properties"].(map[string]any)
	delete(fields["type"].(map[string]any), "enum")
	delete(fields["poolScopeMetadata"].(map[string]any), "x-kubernetes-validations")
	all := []any{version}
	for _, older := range []string{"v1alpha1", "v1beta1"} {
		all = append(all, map[string]any{
			"name": older, "served": true, "storage": false, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{
				"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object"}},
				},
			},
		})
	}
	s := crd["spec"].(map[string]any)
	s["versions"], s["conversion"] = all, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{
			"service": map[string]any{"namespace": "kube-system", "name": "yurt-manager-webhook-service", "path": "/convert"},
		},
	}}
	made, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// TestOpenYurtsDefinition: a definition of NodePools that OpenYurt installed is used and never written. What it does
// not keep stands in the Pool, where modes are switched.
func TestOpenYurtsDefinition(t *testing.T) {
	w := poolWorld{newWorldOf(t, string(openYurts(t))), t, nil}
	w.typed = w.world.typed(t)
	admin, err := dynamic.NewForConfig(w.cloud.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	definition := func() *unstructured.Unstructured {
		t.Helper()
		o, err := admin.Resource(definitions).Get(t.Context(), "nodepools.apps.openyurt.io", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	before := definition()
	w.startBeating()
	w.manage(t, nil)
	for name, address := range map[string]string{"o-1": "10.3.0.1", "o-2": "10.3.0.2"} {
		w.nodeAt(t, "slip", name, address)
		w.speak(false, name)
	}
	slip := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.openyurt.io/v1beta2", "kind": "NodePool", "metadata": map[string]any{"name": "slip"},
		"spec": map[string]any{
			"type": "Edge", "interConnectivity": true, "enableLeaderElection": true, "leaderElectionStrategy": "random",
			"leaderReplicas": int64(1),
			"labels":         map[string]any{"example.com/pool": "slip"},
			"poolScopeMetadata": []any{
				map[string]any{"group": "", "version": "v1", "resource": "services"},
				map[string]any{"group": "discovery.k8s.io", "version": "v1", "resource": "endpointslices"},
				map[string]any{"group": "", "version": "v1", "resource": "secrets"}, // its definition lets it pass
			},
		},
	}}
	resource := nodepool.GroupVersion.WithResource("nodepools")
	if _, err := admin.Resource(resource).Create(t.Context(), slip, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.led("a NodePool of OpenYurt's has a leader", "slip",
		func(nodes string) bool { return len(strings.Fields(nodes)) == 1 })
	w.eventually(t, "its status says what OpenYurt's definition keeps", func() bool {
		s := w.pool("slip").Status
		return s.ReadyNodeNum == 2 && s.LeaderNum == 1 && meta.IsStatusConditionTrue(s.Conditions, nodepool.LeaderReady) &&
			meta.IsStatusConditionTrue(s.Conditions, nodepool.LeaderHubSynced) &&
			meta.IsStatusConditionFalse(s.Conditions, nodepool.ScopeAccepted)
	})
	w.eventually(t, "its nodes have its label", func() bool {
		return w.node(t, "o-1").Labels["example.com/pool"] == "slip"
	})

	own := &pool.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: "slip"}, Spec: pool.Spec{
			Coordinator: &pool.Coordinator{Servers: []string{"https://10.3.0.9:10270"}},
		},
	}
	if err := w.typed.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{pool.ModeCoordinator, pool.ModeLeaderHubs, pool.ModeCoordinator} {
		if err := w.typed.Patch(t.Context(), own,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"mode":"`+mode+`"}}`))); err != nil {
			t.Fatal(err)
		}
		w.eventually(t, "hubs are told the mode "+mode+", and the Pool says so", func() bool {
			told, _ := w.told("slip")
			s := w.own("slip").Status
			return strings.EqualFold(strings.ReplaceAll(told, "-", ""), mode) && s.Mode == mode &&
				meta.IsStatusConditionTrue(s.Conditions, pool.ModeApplied)
		})
	}
	w.eventually(t, "how it is stands in the Pool", func() bool {
		s := w.own("slip").Status
		c := meta.FindStatusCondition(s.Conditions, pool.ScopeAccepted)
		return s.Members == 2 && s.Heard == 2 && meta.IsStatusConditionTrue(s.Conditions, pool.Described) &&
			meta.IsStatusConditionTrue(s.Conditions, pool.Heard) &&
			c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "secrets")
	})
	w.hush("o-1", "o-2")
	w.eventually(t, "that it is silent, too", func() bool {
		s := w.own("slip").Status
		return s.SilentSince != nil && s.Heard == 0 && meta.IsStatusConditionFalse(s.Conditions, pool.Heard)
	})
	if s := w.pool("slip").Status; s.Mode != "" || s.HeardNodeNum != nil || s.CutOffNodeNum != nil ||
		s.SilentSince != nil {
		t.Errorf("the definition is not as OpenYurt's: %+v", s)
	}
	off := []byte(`{"spec":{"interConnectivity":false}}`)
	if _, err := admin.Resource(resource).Patch(t.Context(), "slip", types.MergePatchType, off,
		metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("interConnectivity is changed: %v", err)
	}

	after := definition()
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() ||
		!equality.Semantic.DeepEqual(after.Object["spec"], before.Object["spec"]) {
		t.Errorf("the definition was written: %v, before %v", after.Object["metadata"], before.Object["metadata"])
	}
	as := w.cloud.RESTConfig()
	as.Impersonate = rest.ImpersonationConfig{UserName: managerUser, Groups: accounts}
	manager, err := dynamic.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	mine := []byte(`{"metadata":{"labels":{"app.kubernetes.io/part-of":"weir"}}}`)
	if _, err := manager.Resource(definitions).Patch(t.Context(), before.GetName(), types.MergePatchType, mine,
		metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("weir-manager may write definitions: %v", err)
	}
	if slice := w.scopes("slip"); strings.Contains(slice, "secrets") {
		t.Errorf("hubs are told to share %s", slice)
	}
}

// scopes is what hubs are told that a pool shares.
func (w poolWorld) scopes(name string) string {
	w.t.Helper()
	e := &corev1.Endpoints{}
	if err := w.typed.Get(w.t.Context(), types.NamespacedName{
		Namespace: contract.ManagerNamespace, Name: contract.LeaderHubPrefix + name,
	}, e); err != nil {
		w.t.Fatal(err)
	}
	return e.Annotations[contract.LeaderHubScope]
}
