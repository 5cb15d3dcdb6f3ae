package coordinators

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// world is a pool as a test steps through it: n1 to n<nodes>, and Pods that are ready unless the test says otherwise.
type world struct {
	stand
	down map[string]bool // nodes whose Pods do not serve
}

func newWorld(nodes, replicas int) *world {
	w := &world{down: map[string]bool{}}
	w.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w.Name = "p"
	//nolint:gosec // few
	w.Own = &poolv1.Pool{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", UID: "0123456789",
		}, Spec: poolv1.Spec{Coordinator: &poolv1.Coordinator{Image: "i", Replicas: int32(replicas)}},
	}
	for i := range nodes {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i+1)}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("10.0.0.", i+1)}}
		w.Nodes = append(w.Nodes, n)
		w.Own.Spec.Coordinator.Nodes = append(w.Own.Spec.Coordinator.Nodes, n.Name)
	}
	return w
}

// step takes what next says, and makes the Pods that are missing.
func (w *world) step() string {
	var why string
	w.record, why = w.next()
	w.pods = slices.DeleteFunc(w.pods, func(o corev1.Pod) bool { return !w.recorded(&o) })
	for _, r := range w.Replicas {
		if w.pod(r) == nil {
			o := w.new(r)
			o.UID = types.UID(r.Placement)
			w.pods = append(w.pods, *o)
		}
	}
	for i := range w.pods {
		is := corev1.ConditionTrue
		if w.down[w.pods[i].Spec.NodeName] {
			is = corev1.ConditionFalse
		}
		w.pods[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
	}
	return why
}

// lose lets a node be lost since a time.
func (w *world) lose(node string, since time.Duration) {
	n := w.node(node)
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(w.now.Add(-since))},
	}
	w.stall(node)
}

// stall lets the Pod of a node serve no more.
func (w *world) stall(node string) {
	w.down[node] = true
	for i := range w.pods {
		if w.pods[i].Spec.NodeName == node {
			w.pods[i].Status.Conditions = nil
		}
	}
}

func (w *world) at() string {
	var all []string
	for _, r := range w.Replicas {
		s := r.Node
		if r.Joins {
			s += "+"
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

func (w *world) want(t *testing.T, what, nodes string) {
	t.Helper()
	if got := w.at(); got != nodes {
		t.Errorf("%s: on %s, want %s", what, got, nodes)
	}
}

// TestNext: where replicas go, and where they stay.
func TestNext(t *testing.T) {
	w := newWorld(5, 1)
	w.step()
	w.want(t, "one", "n1")
	w.lose("n1", time.Minute)
	w.step()
	w.want(t, "lost for a minute", "n1")
	w.lose("n1", lostAfter)
	w.Silent = true
	w.step()
	w.want(t, "lost with all its pool", "n1")
	w.Silent = false
	w.step()
	w.want(t, "lost for too long", "n2")
	w.Own.Spec.Coordinator.ReplaceAfter = "30s"
	w.lose("n2", 29*time.Second)
	w.step()
	w.want(t, "lost for less than the Pool says", "n2")
	w.lose("n2", 30*time.Second)
	w.step()
	w.want(t, "lost for as long as it says", "n3")
	w.node("n4").Labels = map[string]string{contract.CoordinatorLabel: "somebody"}
	w.Own.Spec.Coordinator.Nodes = []string{"n4", "n5"}
	w.step()
	w.want(t, "placed elsewhere, but not where somebody else runs one", "n5")
	w.Nodes = slices.DeleteFunc(w.Nodes, func(n corev1.Node) bool { return n.Name == "n5" })
	if why := w.step(); w.at() != "n5" || !strings.Contains(why, "want 1") {
		t.Errorf("no node may run it: on %s, %q", w.at(), why)
	}

	w = newWorld(3, 3)
	w.Nodes = w.Nodes[:2]
	if why := w.step(); w.at() != "" || !strings.Contains(why, "want 3") {
		t.Errorf("three on two nodes: on %s, %q", w.at(), why)
	}

	w = newWorld(6, 3)
	w.step()
	w.want(t, "three", "n1 n2 n3")
	cluster := w.Cluster
	w.lose("n2", time.Hour)
	w.stall("n3")
	if why := w.step(); !strings.Contains(why, "when the others are ready") {
		t.Errorf("one of three is placed anew while another one does not serve: %q", why)
	}
	w.want(t, "one lost, and one of the others does not serve", "n1 n2 n3")
	delete(w.down, "n3")
	w.step()
	w.step()
	w.want(t, "one lost", "n1 n4+ n3")
	w.Own.Spec.Coordinator.Nodes = []string{"n4", "n5", "n6"}
	w.step()
	w.want(t, "all are to be elsewhere: one after the other", "n5+ n4+ n3")
	w.stall("n5")
	w.step()
	w.want(t, "the next one waits for the one before", "n5+ n4+ n3")
	delete(w.down, "n5")
	w.step()
	w.step()
	w.want(t, "and then goes", "n5+ n4+ n6+")
	if w.Cluster != cluster {
		t.Error("they are another cluster")
	}
	w.Own.Spec.Coordinator.Nodes = nil
	w.step()
	w.lose("n4", time.Hour)
	w.lose("n5", time.Hour)
	w.step()
	if got := w.at(); strings.Contains(got, "n4") || strings.Contains(got, "n5") || strings.Contains(got, "+") ||
		w.Cluster == cluster || len(w.Replicas) != 3 {
		t.Errorf("two of three are lost for good: on %s, of cluster %s before %s; want three that begin as another cluster",
			got, w.Cluster, cluster)
	}
	seen := map[string]bool{}
	for _, r := range w.Replicas {
		seen[r.Placement] = true
	}
	if len(seen) != 3 {
		t.Error("two stays have one name", w.Replicas)
	}
}

// TestNobodyLeft: when the last node has left the pool its coordinator is nowhere. When nodes come back it is placed
// again, as another one.
func TestNobodyLeft(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		w := newWorld(3, replicas)
		w.step()
		nodes, before := w.Nodes, w.Placements
		w.Nodes = nodes[:1]
		w.step()
		if len(w.Replicas) == 0 {
			t.Errorf("%d replicas: nowhere, while the pool has a node", replicas)
		}
		w.Nodes = nil
		if why := w.step(); len(w.Replicas) > 0 || len(w.pods) > 0 || why != "the pool has no node" {
			t.Errorf("%d replicas: at %s, %q", replicas, w.at(), why)
		}
		w.Nodes = nodes
		if w.step(); len(w.Replicas) != replicas || w.Placements <= before {
			t.Errorf("%d replicas: again at %s, placements %d, before %d", replicas, w.at(), w.Placements, before)
		}
	}
}

// TestMemoryLimit: a replica has the limit of its Pool, or the default.
func TestMemoryLimit(t *testing.T) {
	for said, want := range map[string]string{"": defaultLimit, "1Gi": "1Gi", "-5Mi": defaultLimit, "much": defaultLimit} {
		if got := memoryLimit(&poolv1.Coordinator{MemoryLimit: said}); got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%q: %s, want %s", said, got.String(), want)
		}
	}
}
