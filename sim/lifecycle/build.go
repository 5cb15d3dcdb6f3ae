package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/pki"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

const (
	podsPerNode = 2
	toleration  = 300 // seconds, what kube-apiserver gives each pod
)

// build creates the objects that are there at the start.
func (w *World) build(ctx context.Context) error {
	if err := w.cloud.Load(manifests.Policies()); err != nil {
		return err
	}
	for i, size := range w.config.Schedule.Pools {
		p, err := newPool(w, PoolName(i))
		if err == nil {
			err = w.handOver(ctx, p)
		}
		if err == nil {
			err = w.describe(ctx, p.name)
		}
		if err != nil {
			return err
		}
		w.pools = append(w.pools, p)
		for k := range size {
			n := &node{w: w, name: fmt.Sprintf("%s-%d", p.name, k+1), pool: p, down: map[string]int{}}
			p.nodes = append(p.nodes, n)
			w.nodes = append(w.nodes, n)
		}
	}
	for k := range w.config.Schedule.Beside {
		w.nodes = append(w.nodes, &node{w: w, name: fmt.Sprintf("town-%d", k+1), down: map[string]int{}})
	}
	for _, n := range w.nodes {
		if err := w.create(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// describe makes the Pool of a pool, which says nothing yet.
func (w *World) describe(ctx context.Context, name string) error {
	o, err := json.Marshal(map[string]any{
		"apiVersion": poolv1.GroupVersion.String(), "kind": "Pool", "metadata": map[string]any{"name": name},
	})
	if err != nil {
		return err
	}
	return w.admin.Discovery().RESTClient().Post().AbsPath("/apis", poolv1.GroupVersion.Group, poolv1.GroupVersion.Version,
		"pools").
		SetHeader("Content-Type", "application/json").Body(o).Do(ctx).Error()
}

// handOver gives weir-manager the key of a pool's authority.
func (w *World) handOver(ctx context.Context, p *pool) error {
	files, err := (&pki.Succession{Signer: p.key}).Files()
	if err != nil {
		return err
	}
	_, err = w.admin.CoreV1().Secrets(contract.KeyNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: contract.AuthorityPrefix + p.name}, Data: files,
	}, metav1.CreateOptions{})
	return err
}

// create creates a node's objects.
func (w *World) create(ctx context.Context, n *node) error {
	zone := "town"
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{corev1.LabelHostname: n.name}}}
	if n.pool != nil {
		zone = n.pool.name
		o.Labels[contract.NodePoolLabel] = n.pool.name
	}
	if !w.config.Schedule.Zoneless {
		o.Labels[corev1.LabelTopologyZone], o.Labels[corev1.LabelTopologyRegion] = zone, "region"
	}
	now := metav1.Now()
	o.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now,
		LastTransitionTime: now,
	}}
	if _, err := w.admin.CoreV1().Nodes().Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return err
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &n.name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NewMicroTime(n.clock())),
	}}
	var err error
	if n.lease, err = w.admin.CoordinationV1().Leases(contract.NodeLeaseNamespace).Create(ctx, l,
		metav1.CreateOptions{}); err != nil {
		return err
	}
	if n.kubelet, err = kubernetes.NewForConfig(&rest.Config{
		Host: "http://hub", Transport: n, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}); err != nil {
		return err
	}
	for range podsPerNode {
		if err := n.createPod(ctx); err != nil {
			return err
		}
	}
	return nil
}

// PoolName is how the pools of a schedule are called.
func PoolName(i int) string { return []string{"harbour", "quarry"}[i] }

// createPod puts a pod on a node, as a Deployment and the scheduler would.
func (n *node) createPod(ctx context.Context) error {
	var name string
	n.w.locked(func() {
		n.pods++
		name = fmt.Sprintf("%s-%d", n.name, n.pods)
	})
	seconds := int64(toleration)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	p.Spec.NodeName = n.name
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
	}
	_, err := n.w.admin.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
	return err
}
