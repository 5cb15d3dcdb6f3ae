package cloud

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-edge/weir/impl/contract"
)

// Node says which Node object to create.
type Node struct {
	Name, Pool, Address string
	Coordinator         string // name of the replica of its pool's coordinator that runs there, "": none does
	Beside              string // a further address, that of the replica; "": none
}

// CreateNodes creates Node objects as kubelets would have: labelled with pool and zone, Ready.
func (c *Cloud) CreateNodes(ctx context.Context, nodes ...Node) error {
	for _, n := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: n.Name,
			Labels: map[string]string{
				corev1.LabelHostname:     n.Name,
				corev1.LabelTopologyZone: n.Pool,
				contract.NodePoolLabel:   n.Pool,
			},
		}}
		if n.Coordinator != "" {
			node.Labels[contract.CoordinatorLabel] = n.Coordinator
		}
		created, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("create node %s: %w", n.Name, err)
		}
		now := metav1.Now()
		created.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.Address}, {Type: corev1.NodeHostName, Address: n.Name},
		}
		if n.Beside != "" {
			created.Status.Addresses = append(created.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: n.Beside})
		}
		created.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Testbed", LastHeartbeatTime: now,
			LastTransitionTime: now,
		}}
		if _, err := c.client.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("report node %s ready: %w", n.Name, err)
		}
	}
	return nil
}

// KeepPools labels Nodes with their pools, by name, as anyone who administers a cluster does: a kubelet may not label
// its own. It starts goroutines, which end with stop.
func (c *Cloud) KeepPools(pools map[string]string) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	label := func(o any) {
		n := o.(*corev1.Node)
		pool := pools[n.Name]
		if pool == "" || n.Labels[contract.NodePoolLabel] == pool {
			return
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, contract.NodePoolLabel, pool)
		// What fails is tried again when the kubelet reports next.
		_, _ = c.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	factory := informers.NewSharedInformerFactory(c.client, 0)
	if _, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: label, UpdateFunc: func(_, o any) { label(o) },
	}); err != nil {
		cancel()
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	factory.Start(ctx.Done())
	return func() { cancel(); factory.Shutdown() }, nil
}
