package managertest

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/sim/testca"
)

// TestGate: pools are told of weir-gate, of another authority while weir-manager runs, and of nothing once it has no
// gate.
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
	with := w.manage(t, func(c *manager.Config) { c.Gate, c.GateCAFile = server, file })
	told("a pool is told of the gate", server, first)
	second := write()
	told("a pool is told of the authority that the gate has now", server, second)
	if err := with.end(); err != nil {
		t.Fatal(err)
	}
	w.manage(t, nil)
	told("a pool is told that there is no gate", "", "")
}
