package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/revocation"
	"github.com/weir-edge/weir/sim/cloud"
)

// TestRelease installs, upgrades and uninstalls. Nodes in a pool keep the release; when they are out, everything goes
// but the definitions.
func TestRelease(t *testing.T) {
	h, c := findHelm(t), newCluster(t, cloud.KubeControllerManager)
	h.kubeconfig = c.admin(t)
	var nodes []cloud.Node
	for i := range 7 {
		nodes = append(nodes, cloud.Node{
			Name: fmt.Sprint("edge-", i+1), Pool: "harbour", Address: fmt.Sprint("127.10.1.", i+1),
		})
	}
	if err := c.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	c.control(t) // after the nodes: it writes them, too
	k := c.kubelet(t)
	eventually(t, func() string { // the controllers have made what they make in a new cluster
		if _, err := c.client.CoreV1().ServiceAccounts("kube-system").Get(t.Context(), "default", metav1.GetOptions{}); err !=
			nil {
			return err.Error()
		}
		if _, err := c.client.CoreV1().ConfigMaps("kube-node-lease").Get(t.Context(), "kube-root-ca.crt",
			metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	before := c.everything(t)
	out, err := h.run(t.Context(), "install", release, h.chart, "--namespace", namespace, "--create-namespace")
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range []string{
		"kubectl -n kube-system rollout status deployment/weir-manager", "kubectl label node",
		"helm uninstall weir -n weir-system",
	} {
		if !strings.Contains(out, next) {
			t.Errorf("the notes do not say %q:\n%s", next, out)
		}
	}

	// What weir-manager writes while it runs, by its own hand: it stays through an upgrade, and goes with the release.
	kept := types.NamespacedName{Namespace: contract.ManagerNamespace, Name: "weir-kept-nodes"}
	patch := []byte(`{"data":{"edge-1":"kept"}}`)
	if _, err := c.client.CoreV1().ConfigMaps(kept.Namespace).Patch(t.Context(), kept.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "weir-manager"}); err != nil {
		t.Fatal(err)
	}
	made := map[string]string{contract.ManagedLabel: contract.ManagedBy}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(t.Context(),
		revocation.Binding(revocation.HubRole, "harbour", []string{"edge-1"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: contract.ForwarderRolePrefix + "harbour", Labels: made}}
	if _, err := c.client.RbacV1().Roles(contract.NodeLeaseNamespace).Create(t.Context(), role,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: contract.LeaderHubPrefix + "harbour", Labels: made},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 10269}}}}
	if _, err := c.client.CoreV1().Services(contract.ManagerNamespace).Create(t.Context(), service,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.run(t.Context(), "upgrade", release, h.chart, "--namespace", namespace, "--set",
		"manager.replicas=3"); err != nil {
		t.Fatal(err)
	}
	if m, err := c.client.CoreV1().ConfigMaps(kept.Namespace).Get(t.Context(), kept.Name, metav1.GetOptions{}); err !=
		nil || m.Data["edge-1"] != "kept" {
		t.Errorf("after an upgrade the policies forgot a node: %v, %v", m.Data, err)
	}
	if d, err := c.client.AppsV1().Deployments(contract.ManagerNamespace).Get(t.Context(), "weir-manager",
		metav1.GetOptions{}); err != nil || *d.Spec.Replicas != 3 {
		t.Errorf("after an upgrade: %+v, %v", d, err)
	}

	// All nodes of the testbed are in a pool.
	installed := c.everything(t)
	if _, err := h.run(t.Context(), "uninstall", release, "--namespace", namespace); err == nil {
		t.Fatal("uninstalled while nodes are in pools")
	}
	said := k.heard("weir-before-uninstall")
	for _, want := range []string{
		"7 nodes are still in pools", "edge-1, edge-2, edge-3, edge-4, edge-5 and 2 more",
		"kubectl label node NODE apps.openyurt.io/nodepool-",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the refusal does not say %q: %s", want, said)
		}
	}
	if lost := minus(installed, c.everything(t)); len(lost) > 0 {
		t.Errorf("refused, and gone all the same: %v", lost)
	}

	for _, n := range nodes {
		patch := []byte(`{"metadata":{"labels":{"` + contract.NodePoolLabel + `":null}}}`)
		if _, err := c.client.CoreV1().Nodes().Patch(t.Context(), n.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := h.run(t.Context(), "uninstall", release, "--namespace", namespace); err != nil {
		t.Fatalf("%v\n%s\n%s\n%s", err, out, k.heard("weir-before-uninstall"), k.heard("weir-after-uninstall"))
	}
	// What grants the last hook its deletes it takes away from itself, in case that helm is stopped before it removes the
	// account.
	k.mu.Lock()
	if len(k.granted) > 0 {
		t.Errorf("when its work was done the account of the last hook had %v", k.granted)
	}
	k.fails = "weir-after-uninstall"
	k.mu.Unlock()
	// One that fails leaves its Job, whose log tells why, and no account that may delete anything.
	eventually(t, func() string {
		if _, err := c.client.CoreV1().Namespaces().Get(t.Context(), contract.KeyNamespace, metav1.GetOptions{}); err == nil {
			return "namespace " + contract.KeyNamespace + " is about to go"
		}
		return ""
	})
	if _, err := h.run(t.Context(), "install", release, h.chart, "--namespace", namespace); err != nil {
		t.Fatal(err)
	}
	if _, err := h.run(t.Context(), "uninstall", release, "--namespace", namespace); err == nil {
		t.Error("the last hook failed, and helm did not say so")
	}
	for name := range c.everything(t) {
		if kind, _, _ := strings.Cut(name, " "); strings.HasSuffix(name, "weir-after-uninstall") && kind != "Job" {
			t.Errorf("the last hook failed, and left %s", name)
		}
	}
	// Helm keeps the namespace that it was told to create. Its definitions are kept on purpose.
	if err := c.client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		rest := slices.DeleteFunc(minus(c.everything(t), before),
			func(name string) bool { return strings.HasPrefix(name, "CustomResourceDefinition ") })
		return strings.Join(rest, ", ")
	})
	if lost := minus(before, c.everything(t)); len(lost) > 0 {
		t.Errorf("more went than had come: %v", lost)
	}
}

// minus is what is in a and not in b, sorted.
func minus(a, b map[string]bool) []string {
	out := slices.Sorted(maps.Keys(a))
	return slices.DeleteFunc(out, func(name string) bool { return b[name] })
}
