package managertest

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/sim/testca"
)

// TestGate: pools are told of weir-gate, of another authority while weir-manager runs, and of nothing once it has no
// gate. They are told what it may reach, as their Pools say it.
func TestGate(t *testing.T) {
	w0 := newWorld(t)
	w := poolWorld{w0, t, w0.typed(t)}
	quay := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "quay"}, Spec: nodepool.Spec{Type: nodepool.Edge}}
	if err := w.typed.Create(t.Context(), quay); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func() string {
		t.Helper()
		a, err := testca.NewAuthority("weir-gate")
		if err == nil {
			err = os.WriteFile(file, a.CertPEM(), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(a.CertPEM())
	}
	told := func(what, server, authorities string) {
		t.Helper()
		w.eventually(t, what, func() bool {
			e := &corev1.Endpoints{}
			if w.typed.Get(t.Context(), types.NamespacedName{
				Namespace: contract.ManagerNamespace, Name: contract.LeaderHubPrefix + "quay",
			}, e) != nil {
				return false
			}
			return e.Annotations[contract.LeaderHubGate] == server && e.Annotations[contract.LeaderHubGateCA] == authorities
		})
	}
	const server = "https://gate.example:30273"
	first := write()
	own := &pool.Pool{ObjectMeta: metav1.ObjectMeta{Name: "quay"}, Spec: pool.Spec{Reach: everywhere(8, 16)}}
	if err := w.typed.Create(t.Context(), own); err != nil {
		t.Fatalf("as many ports as may be: %v", err)
	}
	with := w.manage(t, func(c *manager.Config) { c.Gate, c.GateCAFile = server, file })
	told("a pool is told of the gate", server, first)
	second := write()
	told("a pool is told of the authority that the gate has now", server, second)
	reaches := func(what, spec, want, condition string) {
		t.Helper()
		if err := w.typed.Patch(t.Context(), own,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"reach":`+spec+`}}`))); err != nil {
			t.Fatal(err)
		}
		w.eventually(t, what, func() bool {
			e, is := &corev1.Endpoints{}, ""
			if c := meta.FindStatusCondition(w.own("quay").Status.Conditions, pool.ReachAccepted); c != nil {
				is = c.Reason
			}
			return w.typed.Get(t.Context(), types.NamespacedName{
				Namespace: contract.ManagerNamespace, Name: contract.LeaderHubPrefix + "quay",
			}, e) == nil && e.Annotations[contract.LeaderHubReach] == want && is == condition
		})
	}
	reaches("a pool is told what the cloud may reach",
		`[{"cidr":"10.244.0.0/16","ports":[{"port":8000,"endPort":8100}]},{"cidr":"10.0.9.7/32"}]`,
		"10.0.9.7/32,10.244.0.0/16:8000-8100", "Accepted")
	reaches("what no leader dials is left out", `[{"cidr":"169.254.169.254/32"},{"cidr":"fd00:1::/64"}]`, "fd00:1::/64",
		"Refused")
	reaches("the kubelets alone", "null", "", "")
	if err := with.end(); err != nil {
		t.Fatal(err)
	}
	w.manage(t, nil)
	told("a pool is told that there is no gate", "", "")
}
