package coordinators

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/weir-edge/weir/impl/manager/manifests"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

const (
	// linger is for how long a coordinator goes on that hubs are not told of any more.
	linger = time.Minute
	// again is when it is looked again at what takes its time.
	again = 10 * time.Second
)

// Keeper keeps the coordinators of pools, one after another.
type Keeper struct {
	Client client.Client
	Images manifests.Getter // has Images
	Clock  clock.PassiveClock

	leaving map[types.UID]time.Time // Pods that go, since when hubs are told of others
}

// Placed is what became of a coordinator.
type Placed struct {
	Servers []string         // what hubs are to be told
	Members string           // contract.LeaderHubReplicas
	State   metav1.Condition // CoordinatorPlaced; empty: there is nothing to tell
	Again   time.Duration    // after which it is to be looked again; 0: when something changes
	record
}

// Kept is what was, when nothing more is known.
func Kept(own *poolv1.Pool) Placed {
	p := Placed{record: recorded(own)}
	var all []string
	for _, r := range p.Replicas {
		all = append(all, member(r.Placement, r.Node, r.Server))
	}
	p.Members = joined(all)
	return p
}

// Keep makes the coordinator of a pool what it should be.
func (k *Keeper) Keep(ctx context.Context, p Pool) (Placed, error) {
	var pods corev1.PodList
	if err := k.Client.List(ctx, &pods, client.InNamespace(contract.ManagerNamespace),
		client.MatchingLabels{contract.NameLabel: contract.CoordinatorPods, contract.NodePoolLabel: p.Name}); err != nil {
		return Placed{}, err
	}
	s := &stand{Pool: p, pods: pods.Items, now: k.Clock.Now()}
	if p.Own == nil {
		wait, err := k.retire(ctx, s, true)
		return Placed{Again: wait}, err
	}
	s.record = recorded(p.Own)
	s.image, s.secrets, s.unread = imageOf(ctx, p.Own.Spec.Coordinator, k.Images)
	next, why := s.next()
	if !next.same(s.record) { // it is written down before anything is done: nothing is placed twice
		kept := Kept(p.Own)
		kept.record, kept.Servers, kept.Again, kept.State = next, s.told(), soon, s.state(why)
		return kept, nil
	}
	var failed []error
	for i, r := range s.Replicas { // one that cannot be run does not keep the others
		failed = append(failed, k.run(ctx, s, r))
		s.Replicas[i].Ready = s.ready(r)
	}
	wait, err := k.retire(ctx, s, s.serves() || len(s.Nodes) == 0)
	if err = errors.Join(append(failed, err)...); err != nil {
		return Placed{}, err
	}
	if left := s.patience(); left > 0 && (wait == 0 || left < wait) {
		wait = left
	}
	return Placed{Servers: s.told(), Members: s.members(), State: s.state(why), Again: wait, record: s.record}, nil
}

// retire lets Pods go that are not recorded, linger after hubs have been told of others, and removes labels of Nodes
// that run none. serves: there are others.
func (k *Keeper) retire(ctx context.Context, s *stand, serves bool) (wait time.Duration, err error) {
	if k.leaving == nil {
		k.leaving = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(k.leaving, func(_ types.UID, since time.Time) bool { return s.now.Sub(since) > time.Hour })
	runs := map[string]bool{}
	var failed []error
	for _, r := range s.Replicas {
		runs[r.Node] = true
	}
	for i := range s.pods {
		o := &s.pods[i]
		runs[o.Spec.NodeName] = true
		if s.recorded(o) {
			delete(k.leaving, o.UID)
			continue
		}
		if !o.DeletionTimestamp.IsZero() || !serves && !s.inTheWay(o) {
			continue
		}
		since, known := k.leaving[o.UID]
		if !known {
			since, k.leaving[o.UID] = s.now, s.now
		}
		// a hub that is not heard was not told of another.
		if s.Silent || s.node(o.Spec.NodeName) != nil && s.now.Sub(since) < linger && !s.inTheWay(o) {
			wait = again
			continue
		}
		if err := k.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID}); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("the former coordinator of pool %s on node %s: %w", s.Name, o.Spec.NodeName, err))
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Labels[contract.CoordinatorLabel] == contract.ReplicaName(n.Name) && !runs[n.Name] {
			failed = append(failed, k.label(ctx, n.Name, nil))
		}
	}
	return wait, errors.Join(failed...)
}

// run makes the Pod of a replica, and the label of the Node by which its hub gets the certificates.
func (k *Keeper) run(ctx context.Context, s *stand, r poolv1.Replica) error {
	n := s.node(r.Node)
	if n == nil {
		return nil
	}
	if n.Labels[contract.CoordinatorLabel] == "" {
		if err := k.label(ctx, r.Node, contract.ReplicaName(r.Node)); err != nil {
			return err
		}
	}
	is := s.pod(r)
	switch {
	case is == nil && slices.ContainsFunc(s.pods, func(o corev1.Pod) bool { return o.Spec.NodeName == r.Node }):
		// two have the same port.
		return nil
	case is == nil && s.unread != nil:
		return s.unread
	case is == nil && s.image == "":
		return fmt.Errorf("the coordinator of pool %s on node %s: %w", s.Name, r.Node, ErrNoImage)
	case is == nil:
		if err := k.Client.Create(ctx, s.new(r)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("the coordinator of pool %s on node %s: %w", s.Name, r.Node, err)
		}
	case s.image != "" && is.Spec.Containers[0].Image != s.image && s.spares(r):
		return k.upgrade(ctx, s, is, s.image)
	}
	return nil
}

// spares reports whether a replica may be restarted: all others serve. One that was upgraded a moment ago does not.
func (s *stand) spares(r poolv1.Replica) bool {
	for _, o := range s.Replicas {
		if o.Placement != r.Placement && !s.ready(o) {
			return false
		}
	}
	return true
}

// upgrade gives a Pod another image. Its kubelet restarts the container, in its place.
func (k *Keeper) upgrade(ctx context.Context, s *stand, is *corev1.Pod, image string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{beforeAnnotation: container(is)}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": is.Spec.Containers[0].Name, "image": image}}},
	})
	if err == nil {
		o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: is.Namespace, Name: is.Name}}
		err = k.Client.Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, patch))
	}
	if err != nil {
		return fmt.Errorf("the image of the coordinator of pool %s on node %s: %w", s.Name, is.Spec.NodeName, err)
	}
	// What the others go by, before the cache has heard of it.
	is.Status.Conditions = slices.DeleteFunc(is.Status.Conditions,
		func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	return nil
}

// label writes contract.CoordinatorLabel of a Node; nil: it goes.
func (k *Keeper) label(ctx context.Context, node string, value any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": map[string]any{contract.CoordinatorLabel: value}},
	})
	if err == nil {
		err = k.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
			client.RawPatch(types.MergePatchType, patch))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("label %s of node %s: %w", contract.CoordinatorLabel, node, err)
	}
	return nil
}
