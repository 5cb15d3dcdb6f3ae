package operatortest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodejob"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/proctest"
)

// stockControllers runs the controllers of Jobs and ServiceAccounts as they come.
func (d *desk) stockControllers() {
	d.t.Helper()
	c, err := d.cloud.ControllerManager(cloud.StockTimers())
	must(d.t, err)
	log, err := os.Create(filepath.Join(d.t.TempDir(), "kube-controller-manager.log"))
	must(d.t, err)
	d.t.Cleanup(func() { _ = log.Close() })
	p, err := proctest.Spawner(d.t).Start(proc.Spec{
		Name: c.Name, Path: c.Path, Dir: c.Dir, Output: log, Args: append(c.Args, "--controllers=job,serviceaccount"),
	})
	must(d.t, err)
	d.t.Cleanup(p.Kill)
}

// begun is the Pod of the Job on a node, other than one of before.
func (d *desk) begun(node, before string) *corev1.Pod {
	d.t.Helper()
	var found *corev1.Pod
	testkit.Until(d.t, 2*time.Minute, "a Pod on "+node, func() bool {
		all, err := d.cloud.Client().CoreV1().Pods(contract.ManagerNamespace).List(d.t.Context(), metav1.ListOptions{
			LabelSelector: contract.NameLabel + "=" + contract.PreloadName,
		})
		if err != nil {
			return false
		}
		for i := range all.Items {
			if p := &all.Items[i]; p.Spec.NodeName == node && p.Name != before && p.DeletionTimestamp == nil {
				found = p
			}
		}
		return found != nil
	})
	return found
}

// kubelet says something of a Pod, as the kubelet of its node does.
func (d *desk) kubelet(p *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) {
	d.t.Helper()
	pods := d.cloud.Client().CoreV1().Pods(p.Namespace)
	p, err := pods.Get(d.t.Context(), p.Name, metav1.GetOptions{})
	must(d.t, err)
	p.Status.Phase, p.Status.ContainerStatuses = phase, []corev1.ContainerStatus{{Name: "image", State: state}}
	_, err = pods.UpdateStatus(d.t.Context(), p, metav1.UpdateOptions{})
	must(d.t, err)
}

// pulling is what a kubelet says while it pulls, or cannot.
func pulling(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// ended has the kubelet end a Pod that is deleted, as kubelets do with one whose container never started.
func (d *desk) ended(p *corev1.Pod) {
	d.t.Helper()
	pods := d.cloud.Client().CoreV1().Pods(p.Namespace)
	testkit.Until(d.t, time.Minute, "Pod "+p.Name+" to be deleted", func() bool {
		now, err := pods.Get(d.t.Context(), p.Name, metav1.GetOptions{})
		return err == nil && now.DeletionTimestamp != nil
	})
	d.kubelet(p, corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown",
		Message: "The container could not be located when the pod was terminated",
	}})
	must(d.t, pods.Delete(d.t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
}

// unfailed holds that nothing that happened counts as a failure.
func (d *desk) unfailed() {
	d.t.Helper()
	for _, j := range d.pulls() {
		if j.Status.Failed != 0 {
			d.t.Fatalf("Job %s of %s counts %d failures", j.Name, nodejob.NodeOf(&j), j.Status.Failed)
		}
	}
}

// output is what a command has printed so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) has(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.text.String(), text)
}

// TestInterrupted: a pull ahead of a roll-out goes on, whatever interrupts it: its Pod is deleted, the hours end,
// weir-manager restarts. None of this counts as a failure, and each is told, as is an image that there is not. The
// controller of Jobs is the stock one; this test is the kubelet.
func TestInterrupted(t *testing.T) {
	c, _ := cloudtest.Start(t, cloud.KubeControllerManager)
	kubeconfig, err := c.Kubeconfig("admin", "system:masters")
	must(t, err)
	d := &desk{t, c, kubeconfig}
	d.apply(manifests.NodePools(), manifests.Pools(), manifests.Policies(), manifests.RBAC(), manifests.Hubs())
	if out, code := d.types("pool create harbour --leader-hubs=1"); code != 0 {
		t.Fatal(out)
	}
	for name, address := range map[string]string{"edge-1": "10.0.0.1", "edge-2": "10.0.0.2"} {
		d.node(name, address, 0)
		d.has(name)
	}
	d.stockControllers()
	stop := d.lead()
	defer func() { stop() }()
	testkit.Until(t, time.Minute, "weir-manager to lead", func() bool {
		l, err := c.Client().CoordinationV1().Leases(contract.ManagerNamespace).Get(t.Context(), "weir-manager",
			metav1.GetOptions{})
		return err == nil && l.Spec.HolderIdentity != nil
	})
	const image = "registry.example/app:2"
	var out output
	code := make(chan int, 1)
	go func() { code <- d.typesTo(&out, "images pull --pool=harbour --nodes=all "+image) }()
	told := func(text string) {
		t.Helper()
		testkit.Until(t, time.Minute, "it to print "+text, func() bool { return out.has(text) })
	}

	first := d.begun("edge-1", "")
	d.kubelet(first, corev1.PodPending, pulling("ErrImagePull", "registry.example/app:2: not found"))
	told(image + " on edge-1: ErrImagePull: registry.example/app:2: not found")
	d.kubelet(first, corev1.PodPending, pulling("ContainerCreating", ""))
	must(t, c.Client().CoreV1().Pods(first.Namespace).Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
	told(image + " on edge-1: its Pod is deleted")
	d.ended(first)
	told(image + " on edge-1: waits for its Pod")
	second := d.begun("edge-1", first.Name)
	d.unfailed()

	at := func(after time.Duration) string { return time.Now().UTC().Add(after).Format("15:04") }
	must(t, d.window(`{"start":"`+at(2*time.Hour)+`","end":"`+at(4*time.Hour)+`"}`))
	d.ended(second)
	told(image + " on edge-1: waits for the hours of the pool")
	stop()
	stop = d.lead()
	must(t, d.window(""))
	third := d.begun("edge-1", second.Name)
	d.unfailed()
	d.kubelet(third, corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
	told(image + " on edge-1: it is there")

	d.begun("edge-2", "")
	must(t, c.Client().CoreV1().Nodes().Delete(t.Context(), "edge-2", metav1.DeleteOptions{}))
	told(image + " on edge-2: its node has left the pool")
	if got := <-code; got != 1 || !out.has("1 of 2 pulls failed") {
		t.Errorf("exit code %d", got)
	}
	testkit.Until(t, time.Minute, "the Job of a node that is gone to rest", func() bool {
		waits := false
		for _, j := range d.pulls() {
			waits = waits || nodejob.NodeOf(&j) == "edge-2" && nodejob.Waits(&j)
		}
		return waits
	})
}
