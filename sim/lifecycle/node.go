package lifecycle

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/sim/lifecycle/api"
)

const (
	statusEvery  = 10 * time.Second // a kubelet looks at its node
	reportAlways = 5 * time.Minute  // and reports it, changed or not
)

// What may be down of a node.
const (
	power   = "power"
	kubelet = "kubelet"
	hubDown = "hub"
	cloud   = "cloud" // its link there
	lan     = "lan"   // its link to its pool
)

// node is a machine: a kubelet, and a hub if it is in a pool.
type node struct {
	w    *World
	name string
	pool *pool // nil: it has none

	// Guarded by the World's lock.
	down map[string]int // how many faults hold what down
	skew time.Duration  // of its clock
	hub  *hub           // nil: it does not run
	boot func()         // starts a hub
	pods int

	kubelet kubernetes.Interface  // the way of its kubelet to its hub
	lease   *coordinationv1.Lease // as its kubelet has it

	seen [2]uint64 // versions of nodes and pods at its last report, which found nothing wrong; its loop alone uses it
}

// lives reports whether its kubelet runs. The lock is held, as for all of these.
func (n *node) lives() bool { return n.down[power] == 0 && n.down[kubelet] == 0 }

// works reports whether its hub runs, or it needs none.
func (n *node) works() bool { return n.down[power] == 0 && n.down[hubDown] == 0 }

func (n *node) toCloud() bool { return n.down[cloud] == 0 && n.w.outage == 0 && n.down[power] == 0 }

func (n *node) toPool() bool {
	return n.pool != nil && n.down[lan] == 0 && n.down[power] == 0 && n.pool.up()
}

// clock is the node's own.
func (n *node) clock() time.Time { return time.Now().Add(n.skew) }

// start starts its loops, which end with the context.
func (n *node) start(ctx context.Context, running *sync.WaitGroup) {
	n.boot = func() {
		n.hub = newHub(ctx, running, n)
	}
	n.boot()
	first, look := n.w.span(0, heartbeat.Interval), n.w.span(0, statusEvery)
	running.Go(func() {
		for sleep(ctx, first) {
			n.beat(ctx)
			first = n.w.draw(heartbeat.Interval, heartbeat.Slowest)
		}
	})
	running.Go(func() {
		reported := time.Duration(0)
		for sleep(ctx, look) {
			look = n.w.draw(statusEvery*24/25, statusEvery)
			if n.report(ctx, n.w.now()-reported > reportAlways) {
				reported = n.w.now()
			}
		}
	})
}

// beat is one turn of the kubelet: it renews its Lease, up to five times.
func (n *node) beat(ctx context.Context) {
	leases := n.kubelet.CoordinationV1().Leases(contract.NodeLeaseNamespace)
	for range 5 {
		next := n.lease.DeepCopy()
		n.w.locked(func() { lease.SetRenewTime(next, n.clock()) })
		l, err := leases.Update(ctx, next, metav1.UpdateOptions{})
		conflict := apierrors.IsConflict(err)
		if conflict {
			l, err = leases.Get(ctx, n.name, metav1.GetOptions{})
		}
		if err == nil {
			n.lease = l
		}
		if err != nil || !conflict {
			return
		}
	}
}

// RoundTrip takes a request of its kubelet.
func (n *node) RoundTrip(req *http.Request) (*http.Response, error) {
	var h *hub
	n.w.locked(func() {
		if n.lives() {
			h = n.hub
		}
	})
	if h == nil {
		return nil, errLost
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	req = req.WithContext(ctx)
	if req.Body == nil {
		req.Body = http.NoBody // as a server sees it
	}
	w := httptest.NewRecorder()
	answered := h.answers.Record(w)
	defer h.answers.Forget(answered)
	h.beats.Serve(answered, req, nil)
	return w.Result(), nil
}

// report is a kubelet's look at its node and its pods in the cloud: what is not as it should be is reported.
func (n *node) report(ctx context.Context, anyway bool) bool {
	fine := false
	n.w.locked(func() { fine = n.lives() && n.works() && n.toCloud() })
	now := [2]uint64{n.w.cloud.Changed("nodes"), n.w.cloud.Changed("pods")}
	if !fine || now == n.seen && !anyway {
		return false
	}
	n.seen = [2]uint64{}
	var o corev1.Node
	if !n.w.cloud.Read("nodes", "", n.name, &o) {
		return false
	}
	is := readyOf(&o)
	if is.Status != corev1.ConditionTrue || anyway {
		at := metav1.Now()
		c := corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: at,
			LastTransitionTime: is.LastTransitionTime,
		}
		if is.Status != corev1.ConditionTrue {
			c.LastTransitionTime = at
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{c}}})
		if err != nil {
			panic(err)
		}
		_, err = n.w.admin.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
			"status")
		return err == nil
	}
	if n.reportPods(ctx, len(o.Spec.Taints) == 0) {
		n.seen = now
	}
	return false
}

// reportPods makes pods ready again that somebody marked, and has new ones in place of those that were evicted. It
// reports whether there was nothing to do.
func (n *node) reportPods(ctx context.Context, open bool) bool {
	pods, err := n.w.admin.CoreV1().Pods(metav1.NamespaceDefault).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
	if err != nil {
		return false
	}
	idle := len(pods.Items) == podsPerNode
	for i := range pods.Items {
		p := &pods.Items[i]
		if api.Ready(p) {
			continue
		}
		idle = false
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		}}}})
		if err != nil {
			panic(err)
		}
		if _, err := n.w.admin.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status"); err != nil {
			return false
		}
	}
	for have := len(pods.Items); open && have < podsPerNode; have++ {
		if err := n.createPod(ctx); err != nil {
			return false
		}
	}
	return idle
}

func readyOf(o *corev1.Node) corev1.NodeCondition {
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
}
