package managertest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	grace    = 8 * time.Second // of nodes, in these tests
	interval = time.Second     // between two heartbeats
	patience = 2 * time.Minute // for what should happen
	poll     = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m,
		// Two controllers of k8s.io/apiserver's certificates never shut their queues down.
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// world is a cloud with Weir's manifests, and nodes whose heartbeats the test writes.
type world struct {
	t      *testing.T
	cloud  *cloud.Cloud
	client kubernetes.Interface
	dir    string

	mu    sync.Mutex
	beats map[string]bool          // node -> delegated
	skew  map[string]time.Duration // node -> how far its clock is ahead
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, manifests.NodePools())
}

// newWorldOf has another definition of NodePools.
func newWorldOf(t *testing.T, nodePools string) *world {
	t.Helper()
	c, _ := cloudtest.Start(t)
	for _, m := range []string{nodePools, manifests.Pools(), manifests.Policies(), manifests.RBAC(), manifests.Hubs()} {
		if err := c.Apply(t.Context(), []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	// which a controller makes that does not run here.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := c.Client().CoreV1().ServiceAccounts("default").Create(t.Context(), account,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, cloud: c, client: c.Client(), dir: t.TempDir(), beats: map[string]bool{}, skew: map[string]time.Duration{},
	}
}

// as is a client of another user.
func (w *world) as(user string, groups ...string) kubernetes.Interface {
	w.t.Helper()
	c := w.cloud.RESTConfig()
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// eventually waits until a condition holds.
func (w *world) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// startBeating writes the heartbeats of all nodes in beats until the test ends.
func (w *world) startBeating() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.beatAll(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); <-done })
}

func (w *world) speak(delegated bool, nodes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range nodes {
		w.beats[n] = delegated
	}
}

func (w *world) hush(nodes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range nodes {
		delete(w.beats, n)
	}
}

// beatAll renews the Leases of all nodes that speak, at the same time.
func (w *world) beatAll(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all sync.WaitGroup
	for node, delegated := range w.beats {
		all.Go(func() {
			if err := w.beat(ctx, node, delegated); err != nil && ctx.Err() == nil {
				w.t.Errorf("heartbeat of %s: %v", node, err)
			}
		})
	}
	all.Wait()
}

// beat renews the Lease of a node.
func (w *world) beat(ctx context.Context, node string, delegated bool) error {
	leases := w.client.CoordinationV1().Leases(contract.NodeLeaseNamespace)
	l, err := leases.Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(w.skew[node])))
	delete(l.Annotations, contract.DelegateHeartbeat)
	if delegated {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, contract.DelegateHeartbeat, contract.Delegated)
	}
	_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
	return err
}

// nodes makes ready nodes of a pool, with Leases.
func (w *world) nodes(t *testing.T, pool string, names ...string) {
	t.Helper()
	for _, name := range names {
		w.nodeAt(t, pool, name, "127.10.0.1")
	}
}

// nodeAt makes one, at an address.
func (w *world) nodeAt(t *testing.T, pool, name, address string) {
	t.Helper()
	if err := w.cloud.CreateNodes(t.Context(), cloud.Node{Name: name, Pool: pool, Address: address}); err != nil {
		t.Fatal(err)
	}
	_, err := w.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// pod makes a pod that runs and is ready on a node.
func (w *world) pod(t *testing.T, name, node string, annotations map[string]string) {
	t.Helper()
	pods := w.client.CoreV1().Pods("default")
	p, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))},
	}
	if _, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) getPod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	p, err := w.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (w *world) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n, err := w.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func taint(n *corev1.Node, key string) *corev1.Taint {
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].Key == key {
			return &n.Spec.Taints[i]
		}
	}
	return nil
}

func condition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// run is a manager that runs in this process.
type run struct {
	stop context.CancelFunc
	done chan error
}

// manage starts a manager; it ends with the test at the latest.
func (w *world) manage(t *testing.T, change func(*manager.Config)) *run {
	t.Helper()
	token, err := w.cloud.ClientToken(t.Context(), "weir-manager")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := testca.Kubeconfig(w.cloud.URL(), w.cloud.CA().CertPEM(), nil, token)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.dir, "manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	c := manager.Config{
		Kubeconfig: path, LeaderElect: true,
		LeaderElectLeaseDuration: 15 * time.Second, LeaderElectRenewDeadline: 10 * time.Second,
		LeaderElectRetryPeriod: 500 * time.Millisecond,
		MetricsBindAddress:     "0", HealthProbeBindAddress: "0", NodeMonitorGracePeriod: grace, WhenSilent: "keep",
		Certificates: "sign",
	}
	if change != nil {
		change(&c)
	}
	m, err := manager.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- m.Run(ctx) }()
	t.Cleanup(func() { r.end() })
	return r
}

// end stops a manager and waits for its end. It may be called twice.
func (r *run) end() error {
	r.stop()
	err := <-r.done
	r.done <- err
	return err
}

// listed are the names in one of the ConfigMaps, without the manager's own notes.
func (w *world) listed(t *testing.T, name string) map[string]string {
	t.Helper()
	c, err := w.client.CoreV1().ConfigMaps(contract.ManagerNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	delete(c.Data, "_weir")
	return c.Data
}

// list writes a ConfigMap as the manager would.
func (w *world) list(t *testing.T, name string, data string) {
	t.Helper()
	patch := []byte(`{"data":` + data + `}`)
	if _, err := w.client.CoreV1().ConfigMaps(contract.ManagerNamespace).Patch(t.Context(), name, types.MergePatchType,
		patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
