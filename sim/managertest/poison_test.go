package managertest

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// testPoison: what one node says of itself, and kube-apiserver would take in no other object, keeps nothing from being
// published of its pool.
func testPoison(t *testing.T, w0 *world) {
	w := poolWorld{w0, t, w0.typed(t)}
	names := []string{"brine-1", "brine-2", "brine-3"}
	for i, address := range []string{"10.2.0.1", "169.254.9.9", "10.2.0.3"} {
		w.nodeAt(t, "brine", names[i], address)
		w.speak(false, names[i])
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: contract.CertificatesCondition, Status: corev1.ConditionTrue, Reason: contract.AuthorityEnded,
		Message: strings.Repeat("x", 40_000),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	kubelet := w.as("system:node:brine-1", "system:nodes", "system:authenticated")
	if _, err := kubelet.CoreV1().Nodes().Patch(t.Context(), "brine-1", types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "brine"}, Spec: nodepool.Spec{
			Type: nodepool.Edge, InterConnectivity: true, EnableLeaderElection: true, LeaderElectionStrategy: nodepool.Random,
			LeaderReplicas: 3,
		}},
		&poolv1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "brine"}},
	} {
		if err := w.typed.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.led("the others lead", "brine", func(nodes string) bool {
		return nodes != "" && !strings.Contains(nodes, "brine-2/") && len(strings.Fields(nodes)) == 2
	})
	w.eventually(t, "the NodePool says so", func() bool {
		return meta.IsStatusConditionTrue(w.pool("brine").Status.Conditions, nodepool.LeaderHubSynced)
	})
	w.eventually(t, "and so does the Pool", func() bool {
		var p poolv1.Pool
		if err := w.typed.Get(t.Context(), client.ObjectKey{Name: "brine"}, &p); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(p.Status.Conditions, poolv1.CertificatesCurrent)
		return p.Status.Members == 3 && c != nil && c.Reason == contract.AuthorityEnded
	})
	w.hush(names...)
	for _, name := range names {
		if err := w.client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
