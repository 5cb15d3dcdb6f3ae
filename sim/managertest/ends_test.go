package managertest

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
)

// tell writes on a Node what its hub holds, as the node.
func tell(t *testing.T, as kubernetes.Interface, node string, h digest.Holding) error {
	t.Helper()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{contract.HoldsAnnotation: h.Text()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = as.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// testEnds: a Node has a condition and an Event while a certificate of it ends that was not renewed, by what its hub
// tells with the rights of a node, and which no other node can write.
func testEnds(t *testing.T, w *world) {
	w.nodes(t, "ending", "ends-1", "ends-2")
	node := w.as("system:node:ends-1", "system:nodes", "system:authenticated")
	now := time.Now().UTC().Truncate(time.Second)
	life := func(until time.Time) digest.Holding {
		return digest.Holding{
			Certificates: map[string]digest.Life{"hub": {Begin: now.Add(-80 * 24 * time.Hour), End: until, Renews: true}},
		}
	}
	if err := tell(t, w.as("system:node:ends-2", "system:nodes", "system:authenticated"), "ends-1",
		life(now)); !apierrors.IsForbidden(err) {
		t.Errorf("another node tells what this one holds: %v", err)
	}
	is := func(status corev1.ConditionStatus, reason string) func() bool {
		return func() bool {
			c := condition(w.node(t, "ends-1"), contract.CertificatesCondition)
			return c.Status == status && c.Reason == reason
		}
	}
	if err := tell(t, node, "ends-1", life(now.Add(10*24*time.Hour))); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "it is told that the certificate ends", is(corev1.ConditionTrue, "CertificateEndsSoon"))
	if err := tell(t, node, "ends-1", life(now.Add(80*24*time.Hour))); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "it is told that it was renewed", is(corev1.ConditionFalse, "CertificatesRenewed"))
	w.eventually(t, "an Event tells of it", func() bool {
		all, err := w.client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all.Items {
			if e.Regarding.Kind == "Node" && e.Regarding.Name == "ends-1" && e.Reason == "CertificateEndsSoon" {
				return true
			}
		}
		return false
	})
	if c := condition(w.node(t, "ends-2"), contract.CertificatesCondition); c.Type != "" {
		t.Errorf("the node beside it: %+v", c)
	}
}
