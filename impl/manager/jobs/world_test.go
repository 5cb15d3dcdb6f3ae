package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodejob"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// world is a cluster in memory: its nodes do what Jobs say, when a test lets them.
type world struct {
	t      *testing.T
	client client.WithWatch
	clock  *testclock.FakeClock
	events *events.FakeRecorder
	keeper *keeper

	late    client.WithWatch
	hidden  bool              // the cache has not heard of any Job yet
	in      map[string]string // pools that the machines are in
	made    int               // Jobs
	refuse  error             // what kube-apiserver says of a Job
	refused string            // the node whose Job it says that of; "": of all
}

func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, batchv1.AddToScheme, nodepool.AddToScheme, poolv1.AddToScheme,
	} {
		check(t, add(scheme))
	}
	w := &world{
		t: t, clock: testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		events: events.NewFakeRecorder(10000), in: map[string]string{},
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&poolv1.Pool{}, &corev1.Node{},
		&batchv1.Job{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if j, ok := o.(*batchv1.Job); ok {
				if w.refuse != nil && (w.refused == "" || o.GetAnnotations()[contract.InstallNode] == w.refused) {
					return w.refuse
				}
				w.made++
				j.UID = types.UID(fmt.Sprint("job-", w.made))
				j.CreationTimestamp = metav1.NewTime(w.clock.Now())
			}
			return c.Create(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if j, ok := o.(*batchv1.Job); ok {
				if is, _ := nodejob.PhaseOf(j); is == nodejob.Running && w.goesOn(j) {
					t.Errorf("the Job of node %s is deleted while it runs", j.Annotations[contract.InstallNode])
				}
			}
			return c.Delete(ctx, o, options...)
		},
	}).Build()
	late := interceptor.NewClient(w.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, all client.ObjectList, options ...client.ListOption) error {
			if _, ok := all.(*batchv1.JobList); ok && w.hidden {
				return nil
			}
			return c.List(ctx, all, options...)
		},
	})
	w.late = late
	w.restart()
	w.images("installer:1")
	for _, name := range nodes {
		w.make(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-1")}})
		w.says(name, corev1.NodeReady, corev1.ConditionTrue)
	}
	return w
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) make(o client.Object) {
	w.t.Helper()
	check(w.t, w.client.Create(w.t.Context(), o))
}

// restart is another weir-manager, which knows what the cluster has.
func (w *world) restart() {
	w.keeper = &keeper{
		client: w.late, reader: w.client, images: w.client, clock: w.clock, events: w.events, metrics: NewMetrics(),
		log: slog.New(slog.DiscardHandler),
	}
}

// failed holds that the metric has these nodes, by pool.
func (w *world) failed(want ...string) {
	w.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.keeper.metrics.failed)
	families, err := registry.Gather()
	check(w.t, err)
	var got []string
	for _, f := range families {
		for _, m := range f.GetMetric() { // labels are in the order of their names
			got = append(got, m.GetLabel()[1].GetValue()+"/"+m.GetLabel()[0].GetValue())
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		w.t.Errorf("the metric has %v, want %v", got, want)
	}
}

// goesOn reports whether nobody may take a Job away: it is young, or its image is being pulled.
func (w *world) goesOn(j *batchv1.Job) bool {
	age := w.clock.Since(j.CreationTimestamp.Time)
	p := &corev1.Pod{}
	if w.client.Get(w.t.Context(), client.ObjectKey{Namespace: j.Namespace, Name: podOf(j)}, p) != nil ||
		len(p.Status.ContainerStatuses) == 0 {
		return age < 30*time.Minute
	}
	if on := p.Status.ContainerStatuses[0].State; on.Running != nil {
		return w.clock.Since(on.Running.StartedAt.Time) < 30*time.Minute
	} else if on.Waiting.Reason == "ContainerCreating" && able(w.node(j.Annotations[contract.InstallNode])) {
		return age < 3*time.Hour
	}
	return age < 30*time.Minute
}

func podOf(j *batchv1.Job) string { return "pod-of-" + string(j.UID) }

// podIs says what the container of the Job of a node is at: a reason why it waits, or "Running".
func (w *world) podIs(node, reason string) {
	w.t.Helper()
	j := w.jobs()[node]
	if j == nil {
		w.t.Fatalf("node %s has no Job", node)
	}
	p := &corev1.Pod{}
	if w.client.Get(w.t.Context(), client.ObjectKey{Namespace: j.Namespace, Name: podOf(j)}, p) != nil {
		p = w.newPod(j)
		w.make(p)
	}
	on := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "so says " + node}}
	if reason == "Running" {
		on = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.clock.Now())}}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: on}}
	check(w.t, w.client.Status().Update(w.t.Context(), p))
}

func (w *world) newPod(j *batchv1.Job) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: podOf(j), Labels: nodejob.InstallLabels(),
			CreationTimestamp: metav1.NewTime(w.clock.Now()),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: j.UID, Controller: new(true)},
			},
		},
	}
	p.Labels[batchv1.JobNameLabel] = j.Name
	return p
}

// waits lets time go by, while the keeper looks now and then.
func (w *world) waits(long time.Duration) {
	w.t.Helper()
	for end := w.clock.Now().Add(long); w.clock.Now().Before(end); {
		w.clock.Step(min(2*time.Minute, end.Sub(w.clock.Now())))
		w.step()
	}
}

// images says which images Jobs may run, and by which Secrets they are pulled.
func (w *world) images(text string, secrets ...string) {
	w.t.Helper()
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: contract.InstallerImages},
		Data: map[string]string{
			contract.InstallerImagesKey: text, contract.PullSecretsKey: strings.Join(secrets, "\n") + "\n",
		},
	}
	check(w.t, client.IgnoreNotFound(w.client.Delete(w.t.Context(), c.DeepCopy())))
	w.make(c)
}

// pool makes one of which hubs are told.
func (w *world) pool(name string) {
	w.t.Helper()
	w.make(&nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.make(&poolv1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.make(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: contract.ManagerNamespace, Name: contract.LeaderHubPrefix + name,
			Labels: map[string]string{contract.ManagedLabel: contract.ManagedBy},
		},
	})
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	n := &corev1.Node{}
	check(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, n))
	return n
}

// label puts nodes into a pool; "": out of it.
func (w *world) label(pool string, nodes ...string) {
	w.t.Helper()
	for _, name := range nodes {
		n := w.node(name)
		if n.Labels = map[string]string{contract.NodePoolLabel: pool}; pool == "" {
			n.Labels = nil
		}
		check(w.t, w.client.Update(w.t.Context(), n))
	}
}

// says sets a condition of a Node; "": it goes.
func (w *world) says(name string, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	w.t.Helper()
	n := w.node(name)
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions,
		func(c corev1.NodeCondition) bool { return c.Type == kind })
	if status != "" {
		n.Status.Conditions = append(n.Status.Conditions,
			corev1.NodeCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(w.clock.Now())})
	}
	check(w.t, w.client.Status().Update(w.t.Context(), n))
}

// step lets the keeper look until nothing is left to do at once.
func (w *world) step() {
	w.t.Helper()
	for range 10 {
		w.clock.Step(time.Second)
		r, err := w.keeper.Reconcile(w.t.Context(), reconcile.Request{})
		check(w.t, err)
		if r.RequeueAfter >= recheck {
			return
		}
	}
	w.t.Fatal("it never comes to rest")
}

// jobs are those that there are, by node.
func (w *world) jobs() map[string]*batchv1.Job {
	w.t.Helper()
	var all batchv1.JobList
	check(w.t, w.client.List(w.t.Context(), &all))
	out := map[string]*batchv1.Job{}
	for i := range all.Items {
		out[all.Items[i].Annotations[contract.InstallNode]] = &all.Items[i]
	}
	return out
}

// running are the nodes on which Jobs run, and what for.
func (w *world) running() string {
	var all []string
	for node, j := range w.jobs() {
		if is, _ := nodejob.PhaseOf(j); is == nodejob.Running {
			all = append(all, node+"→"+j.Annotations[contract.InstallPool])
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (w *world) want(what, nodes string) {
	w.t.Helper()
	if w.step(); w.running() != nodes {
		w.t.Fatalf("%s: Jobs run on %q, want %q", what, w.running(), nodes)
	}
}

// end ends the Job of a node as its machine and the Job controller would.
func (w *world) end(node string, well bool) {
	w.t.Helper()
	w.clock.Step(time.Second)
	j := w.jobs()[node]
	if j == nil {
		w.t.Fatalf("node %s has no Job", node)
	}
	kind := batchv1.JobComplete
	if well {
		w.in[node] = j.Annotations[contract.InstallPool]
		status := corev1.ConditionTrue
		if w.in[node] == "" {
			status = ""
		}
		w.says(node, contract.JoinedCondition, status)
	} else {
		kind = batchv1.JobFailed
		p := w.newPod(j)
		check(w.t, client.IgnoreNotFound(w.client.Delete(w.t.Context(), p.DeepCopy())))
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{
				State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "preflight: disk: /var/lib has 3 MB free\n"},
				},
			},
		}
		w.make(p)
	}
	j.Status.Conditions = []batchv1.JobCondition{
		{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now()), Message: "as it ended"},
	}
	check(w.t, w.client.Status().Update(w.t.Context(), j))
}

// state is what the Pool says.
func (w *world) state(name string) metav1.Condition {
	w.t.Helper()
	p := &poolv1.Pool{}
	check(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, p))
	c := meta.FindStatusCondition(p.Status.Conditions, poolv1.NodesInstalled)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

// told tells how many Events have a text.
func (w *world) told(text string) (n int) {
	for {
		select {
		case e := <-w.events.Events:
			if strings.Contains(e, text) {
				n++
			}
		default:
			return n
		}
	}
}
