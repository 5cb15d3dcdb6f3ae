package jobs

import (
	"log/slog"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// preloadsWorld is a cluster in memory, with two nodes of a pool that pulls at night.
type preloadsWorld struct {
	t      *testing.T
	client client.Client
	clock  *testclock.FakeClock
	keeper *preloads
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newPreloadsWorld(t *testing.T, zone string) *preloadsWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, poolv1.AddToScheme} {
		must(t, add(scheme))
	}
	w := &preloadsWorld{t: t, clock: testclock.NewFakeClock(time.Date(2026, 11, 28, 20, 59, 0, 0, time.UTC))}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&batchv1.Job{}).Build()
	w.keeper = &preloads{client: w.client, clock: w.clock, log: slog.New(slog.DiscardHandler)}
	w.make(&poolv1.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: "harbour"}, Spec: poolv1.Spec{Images: &poolv1.Images{
			Window: []poolv1.ImageWindow{{Start: "22:00", End: "05:00", TimeZone: zone}},
		}},
	})
	for _, name := range []string{"edge-1", "edge-2"} {
		w.make(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}})
	}
	return w
}

func (w *preloadsWorld) make(o client.Object) {
	w.t.Helper()
	must(w.t, w.client.Create(w.t.Context(), o))
}

func (w *preloadsWorld) job(pool, name, node string) {
	w.t.Helper()
	j := nodejob.Preload{Pool: pool, Node: node, Image: "registry.example/app:1", Deadline: time.Hour}.Job()
	j.GenerateName, j.Name = "", name
	w.make(j)
}

// runs has the keeper look, and holds whether a Job runs then.
func (w *preloadsWorld) runs(name string, want bool) {
	w.t.Helper()
	_, err := w.keeper.Reconcile(w.t.Context(), reconcile.Request{})
	must(w.t, err)
	var j batchv1.Job
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: contract.ManagerNamespace, Name: name}, &j))
	if nodejob.Waits(&j) == want {
		w.t.Errorf("at %s Job %s runs: %t", w.clock.Now(), name, !want)
	}
}

func (w *preloadsWorld) ends(name string) {
	w.t.Helper()
	var j batchv1.Job
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: contract.ManagerNamespace, Name: name}, &j))
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	must(w.t, w.client.Status().Update(w.t.Context(), &j))
}

// TestHours: Jobs run in the hours of their Pool, one after the other, and those of a pool without a Pool at once.
func TestHours(t *testing.T) {
	w := newPreloadsWorld(t, "Europe/Berlin")
	w.job("harbour", "first", "edge-1")
	w.job("harbour", "second", "edge-2")
	w.job("quay", "other", "edge-2")
	w.runs("first", false)
	w.runs("other", true)
	w.clock.Step(time.Minute) // 22:00 in Berlin
	w.runs("first", true)
	w.runs("second", false)
	w.clock.Step(7*time.Hour - time.Second)
	w.runs("first", true)
	w.clock.Step(time.Second)
	w.runs("first", false)
	w.clock.Step(17 * time.Hour)
	w.runs("first", true)
	w.ends("first")
	w.runs("second", true)
}

// TestNodes: a node that is not Ready keeps its Job and nobody waiting. The Job of one that is gone makes no more Pods,
// until there is one of that name again. Another weir-manager goes on from what there is.
func TestNodes(t *testing.T) {
	w := newPreloadsWorld(t, "UTC")
	w.clock.Step(2 * time.Hour)
	w.job("harbour", "first", "edge-1")
	w.job("harbour", "second", "edge-2")
	w.runs("first", true)
	w.runs("second", false)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}
	must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	must(t, w.client.Status().Update(t.Context(), node))
	w.keeper = &preloads{client: w.client, clock: w.clock, log: slog.New(slog.DiscardHandler)}
	w.runs("first", true)
	w.runs("second", true)
	must(t, w.client.Delete(t.Context(), node))
	w.runs("first", false)
	w.runs("second", true)
	w.make(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	w.runs("first", false)
	w.ends("second")
	w.runs("first", true)
}

// TestUnknownZone: hours of a time zone that is none never begin.
func TestUnknownZone(t *testing.T) {
	w := newPreloadsWorld(t, "Europe/Atlantis")
	w.job("harbour", "first", "edge-1")
	w.clock.Step(2 * time.Hour)
	w.runs("first", false)
}
