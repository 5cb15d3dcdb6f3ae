package coordinators

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

const (
	// Replica is the value of contract.CoordinatorLabel on nodes that weir-manager has chosen. Labels with another value are somebody else's.
	Replica = "weir-manager"
	// linger is for how long a coordinator goes on that hubs are not told of any more.
	linger = time.Minute
	// again is when it is looked again at what takes its time.
	again = 10 * time.Second
)

// Keeper keeps the coordinators of pools, one after another.
type Keeper struct {
	Client client.Client
	Clock  clock.PassiveClock

	leaving map[types.UID]time.Time // Pods that go, since when
}

// Pool is what is known of a pool.
type Pool struct {
	Name   string
	Own    *poolv1.Pool // nil: it is to have no coordinator
	Nodes  []corev1.Node
	Silent bool // no node of it is heard
}

// Placed is what became of a coordinator.
type Placed struct {
	Servers []string         // what hubs are to be told
	State   metav1.Condition // CoordinatorPlaced; empty: there is nothing to tell
	Again   time.Duration    // after which it is to be looked again; 0: when something changes
}

// Keep makes the coordinator of a pool what it should be.
func (k *Keeper) Keep(ctx context.Context, p Pool) (Placed, error) {
	var pods corev1.PodList
	if err := k.Client.List(ctx, &pods, client.InNamespace(contract.ManagerNamespace), client.MatchingLabels{nameLabel: nameValue, contract.NodePoolLabel: p.Name}); err != nil {
		return Placed{}, err
	}
	if p.Own == nil {
		return k.retire(ctx, p, pods.Items, nil)
	}
	at := k.node(p, pods.Items)
	if at == nil {
		placed, err := k.retire(ctx, p, nil, nil)
		placed.State = state(metav1.ConditionFalse, "NoNode", "no node of the pool is Ready, has an internal address and is selected")
		placed.Servers = p.told(pods.Items, nil)
		return placed, err
	}
	is, err := k.run(ctx, p.Own, at, pods.Items)
	if err != nil {
		return Placed{}, err
	}
	if !ready(is) {
		c := state(metav1.ConditionFalse, "NotReady", "the coordinator on node "+at.Name+" is not ready yet")
		if is != nil && is.UID != "" && p.Silent {
			c = state(metav1.ConditionUnknown, "PoolSilent", "no node of the pool is heard: the coordinator is left where it is, on node "+at.Name)
		}
		return Placed{Servers: p.told(pods.Items, at), State: c}, nil
	}
	rest := slices.DeleteFunc(slices.Clone(pods.Items), func(o corev1.Pod) bool { return o.Name == is.Name })
	placed, err := k.retire(ctx, p, rest, at)
	url, _ := server(at)
	placed.Servers, placed.State = []string{url}, state(metav1.ConditionTrue, "Running", "on node "+at.Name)
	return placed, err
}

func state(s metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: poolv1.CoordinatorPlaced, Status: s, Reason: reason, Message: message}
}

// node is where the coordinator belongs: where it is, if it may stay there.
func (k *Keeper) node(p Pool, pods []corev1.Pod) *corev1.Node {
	var stay *corev1.Node
	for i := range p.Nodes {
		n := &p.Nodes[i]
		j := slices.IndexFunc(pods, func(o corev1.Pod) bool { return o.Spec.NodeName == n.Name && o.DeletionTimestamp.IsZero() })
		if j < 0 || !remains(p.Own.Spec.Coordinator, n, p.Silent, k.Clock.Now()) {
			continue
		}
		if _, goes := k.leaving[pods[j].UID]; !goes && (stay == nil || ready(&pods[j])) {
			stay = n
		}
	}
	if stay != nil || p.Silent {
		return stay
	}
	return choose(p.Own, p.Nodes)
}

// told are the addresses that hubs know already, and whose coordinators still run: they are told those until the new one is ready.
func (p Pool) told(pods []corev1.Pod, at *corev1.Node) (all []string) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		url, ok := server(n)
		runs := at != nil && n.Name == at.Name || slices.ContainsFunc(pods, func(o corev1.Pod) bool { return o.Spec.NodeName == n.Name && o.DeletionTimestamp.IsZero() })
		if ok && runs && slices.Contains(p.Own.Status.Coordinators, url) {
			all = append(all, url)
		}
	}
	return all
}

// run makes the Pod on a node, and the label of the Node by which its hub gets the certificates.
func (k *Keeper) run(ctx context.Context, own *poolv1.Pool, at *corev1.Node, pods []corev1.Pod) (*corev1.Pod, error) {
	if at.Labels[contract.CoordinatorLabel] == "" {
		if err := k.label(ctx, at.Name, Replica); err != nil {
			return nil, err
		}
	}
	want := pod(own, at.Name)
	i := slices.IndexFunc(pods, func(o corev1.Pod) bool { return o.Name == want.Name })
	switch {
	case i < 0:
		if err := k.Client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("the coordinator of pool %s on node %s: %w", own.Name, at.Name, err)
		}
		return nil, nil
	case !pods[i].DeletionTimestamp.IsZero():
		return nil, nil
	case pods[i].Spec.Containers[0].Image != own.Spec.Coordinator.Image:
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": want.Spec.Containers[0].Name, "image": own.Spec.Coordinator.Image}}}})
		if err == nil {
			err = k.Client.Patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}, client.RawPatch(types.StrategicMergePatchType, patch))
		}
		if err != nil {
			return nil, fmt.Errorf("the image of the coordinator of pool %s: %w", own.Name, err)
		}
	}
	delete(k.leaving, pods[i].UID)
	return &pods[i], nil
}

// retire lets Pods go, linger after hubs have been told of another, and takes back labels of Nodes that run none. at is where one runs.
func (k *Keeper) retire(ctx context.Context, p Pool, pods []corev1.Pod, at *corev1.Node) (placed Placed, err error) {
	now := k.Clock.Now()
	if k.leaving == nil {
		k.leaving = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(k.leaving, func(_ types.UID, since time.Time) bool { return now.Sub(since) > time.Hour })
	runs := map[string]bool{}
	if at != nil {
		runs[at.Name] = true
	}
	for i := range pods {
		o := &pods[i]
		runs[o.Spec.NodeName] = true
		member := slices.ContainsFunc(p.Nodes, func(n corev1.Node) bool { return n.Name == o.Spec.NodeName })
		since, known := k.leaving[o.UID]
		if !known {
			since, k.leaving[o.UID] = now, now
		}
		switch {
		case !o.DeletionTimestamp.IsZero():
		case p.Silent || member && now.Sub(since) < linger: // a hub that is not heard was not told of another
			placed.Again = again
		default:
			if err := k.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID}); client.IgnoreNotFound(err) != nil {
				return placed, fmt.Errorf("the former coordinator of pool %s on node %s: %w", p.Name, o.Spec.NodeName, err)
			}
		}
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Labels[contract.CoordinatorLabel] == Replica && !runs[n.Name] {
			if err := k.label(ctx, n.Name, nil); err != nil {
				return placed, err
			}
		}
	}
	return placed, nil
}

// label writes contract.CoordinatorLabel of a Node; nil: it goes.
func (k *Keeper) label(ctx context.Context, node string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{contract.CoordinatorLabel: value}}})
	if err == nil {
		err = k.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, patch))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("label %s of node %s: %w", contract.CoordinatorLabel, node, err)
	}
	return nil
}

// ready tells whether the kubelet has seen a coordinator serve.
func ready(o *corev1.Pod) bool {
	return o != nil && o.DeletionTimestamp.IsZero() && slices.ContainsFunc(o.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
