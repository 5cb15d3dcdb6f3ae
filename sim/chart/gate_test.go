package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// TestGate switches weir-gate on, upgrades and switches it off. It runs with its grants and its certificate, which stays
// through an upgrade, is another one for another host, and goes with the gate.
func TestGate(t *testing.T) {
	h, c := findHelm(t), newCluster(t)
	h.kubeconfig = c.admin(t)
	helm := func(args ...string) {
		t.Helper()
		if out, err := h.run(t.Context(), append(args, "--namespace", namespace)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	certificate := func() map[string][]byte {
		t.Helper()
		s, err := c.client.CoreV1().Secrets(contract.ManagerNamespace).Get(t.Context(), "weir-gate-tls", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if names := slices.Sorted(maps.Keys(s.Data)); !slices.Equal(names, []string{"ca.crt", "tls.crt", "tls.key"}) {
			t.Errorf("the Secret has %v", names)
		}
		return s.Data
	}
	same := func(a, b map[string][]byte) bool { return string(a["tls.key"]) == string(b["tls.key"]) }
	told := func(want int) {
		t.Helper()
		d, err := c.client.AppsV1().Deployments(contract.ManagerNamespace).Get(t.Context(), "weir-manager",
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		if n := strings.Count(strings.Join(pod.Containers[0].Args, " "), "--gate"); n != 2*want || len(pod.Volumes) != want ||
			len(pod.Containers[0].VolumeMounts) != want {
			t.Errorf("weir-manager has %v, %v", pod.Containers[0].Args, pod.Volumes)
		}
	}
	const upgrade, keep = "upgrade", "--reset-then-reuse-values"
	helm("install", release, h.chart, "--create-namespace")
	told(0)
	helm(upgrade, release, h.chart, keep, "--set", "gate.enabled=true,gate.address=127.0.0.1:30273")
	first := certificate()
	told(1)
	helm(upgrade, release, h.chart, keep, "--set", "gate.replicas=3,gate.address=127.0.0.1:30274")
	if !same(first, certificate()) {
		t.Error("an upgrade makes another certificate for the same host")
	}
	helm(upgrade, release, h.chart, keep, "--set", "gate.address=gate.example:30273")
	if same(first, certificate()) {
		t.Error("another host has the certificate of before")
	}
	helm(upgrade, release, h.chart, keep, "--set", "gate.enabled=false")
	told(0)
	for name := range c.everything(t) {
		if strings.Contains(name, "weir-gate") || strings.Contains(name, "weir:gate") {
			t.Errorf("it is off, and left %s", name)
		}
	}
	if _, err := c.client.CoreV1().Secrets(contract.ManagerNamespace).Get(t.Context(), "weir-gate-tls",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its key is still there: %v", err)
	}
}
