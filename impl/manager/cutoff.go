package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

const (
	cutOffWorkers = 8
	lag           = 100 * time.Millisecond // after which the cache should have heard of what another one wrote
)

// cutOff shows on a Node what is known of it: the taint, the condition and an Event when the condition changes. Of what
// others write on a Node it changes nothing.
type cutOff struct {
	client  client.Client
	clock   clock.Clock
	board   *board
	events  events.EventRecorder
	metrics *metrics
}

// add runs it while the manager leads: for each node whose verdict changes, and each Node that somebody changed.
func (c *cutOff) add(m ctrl.Manager) error {
	verdicts := source.Func(func(_ context.Context, q queue) error {
		c.board.subscribe(func(node string) { q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}) })
		return nil
	})
	return reconciles(m, "cut-off", c, cutOffWorkers, verdicts,
		source.Kind(m.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{}))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// reconciles runs a controller while the manager leads, with what its sources ask for.
func reconciles(m ctrl.Manager, name string, r reconcile.Reconciler, workers int, sources ...source.Source) error {
	run, err := controller.New(name, m, manifests.Options(r, workers))
	for _, s := range sources {
		if err == nil {
			err = run.Watch(s)
		}
	}
	if err != nil {
		return fmt.Errorf("controller %s: %w", name, err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (c *cutOff) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	decision, _ := c.board.read()
	v, known := decision.Nodes[r.Name]
	if !known {
		return reconcile.Result{}, nil
	}
	var n corev1.Node
	if err := c.client.Get(ctx, r.NamespacedName, &n); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := c.taint(ctx, &n, v)
	if err == nil {
		err = c.condition(ctx, &n, v, decision.Pools[v.Pool])
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: lag}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// taint sets the taint while heartbeats are delegated, and takes it away when the node speaks for itself. A node that
// falls silent keeps what it has: stock Kubernetes taints it as well.
func (c *cutOff) taint(ctx context.Context, n *corev1.Node, v verdict.Verdict) error {
	has := taintOf(n, contract.CutOffTaint, corev1.TaintEffectNoSchedule) != nil
	var taints []corev1.Taint
	var change string
	switch {
	case v.State == verdict.Delegated && !has:
		now := metav1.NewTime(c.clock.Now())
		taints = append(slices.Clone(n.Spec.Taints), corev1.Taint{
			Key: contract.CutOffTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now,
		})
		change = "add"
	case v.State == verdict.Normal && has:
		taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
			return t.Key == contract.CutOffTaint && t.Effect == corev1.TaintEffectNoSchedule
		})
		change = "remove"
	default:
		return nil
	}
	if err := patchTaints(ctx, c.client, n, taints); err != nil {
		return fmt.Errorf("%s taint %s of node %s: %w", change, contract.CutOffTaint, n.Name, err)
	}
	c.metrics.taints.WithLabelValues(change).Inc()
	return nil
}

// patchTaints replaces the list of taints, which is one value to the API, if nobody changed the Node since it was read.
func patchTaints(ctx context.Context, c client.Client, n *corev1.Node, taints []corev1.Taint) error {
	if taints == nil {
		taints = []corev1.Taint{}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": n.ResourceVersion, "uid": n.UID},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return err
	}
	return c.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}},
		client.RawPatch(types.MergePatchType, patch))
}

// condition sets the condition, which is merged by its type, and tells of it by an Event.
func (c *cutOff) condition(ctx context.Context, n *corev1.Node, v verdict.Verdict, p verdict.PoolVerdict) error {
	before := conditionOf(n, contract.CutOffCondition)
	want := describe(before, v, p)
	if want == nil || before != nil && before.Status == want.Status && before.Reason == want.Reason &&
		before.Message == want.Message {
		return nil
	}
	now := metav1.NewTime(c.clock.Now())
	want.Type, want.LastHeartbeatTime, want.LastTransitionTime = contract.CutOffCondition, now, now
	if before != nil && before.Status == want.Status {
		want.LastTransitionTime = before.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.UID},
		"status":   map[string]any{"conditions": []*corev1.NodeCondition{want}},
	})
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	if err := c.client.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return fmt.Errorf("set condition %s of node %s: %w", contract.CutOffCondition, n.Name, err)
	}
	c.metrics.conditions.WithLabelValues(want.Reason).Inc()
	kind := corev1.EventTypeWarning
	if want.Status == corev1.ConditionFalse {
		kind = corev1.EventTypeNormal
	}
	c.events.Eventf(&corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID},
	}, nil, kind, want.Reason, "Observe", "%s", want.Message)
	return nil
}

// Reasons of the condition.
const (
	reasonDelegated = "HeartbeatDelegated"
	reasonDirect    = "HeartbeatDirect"
	reasonMissing   = "HeartbeatMissing"
	reasonSilent    = "PoolSilent"
	reasonGivenUp   = "PoolGivenUp"
)

// describe says what the condition should be; nil: as it is.
func describe(before *corev1.NodeCondition, v verdict.Verdict, p verdict.PoolVerdict) *corev1.NodeCondition {
	set := func(status corev1.ConditionStatus, reason, message string) *corev1.NodeCondition {
		return &corev1.NodeCondition{Status: status, Reason: reason, Message: message}
	}
	switch {
	case v.State == verdict.Delegated:
		return set(corev1.ConditionTrue, reasonDelegated,
			"the node reaches its pool but not the cloud; a peer forwards its heartbeats. Its pods stay, it gets no new ones")
	case v.State == verdict.Normal && before != nil:
		return set(corev1.ConditionFalse, reasonDirect, "the node's own heartbeats reach the cloud")
	case v.State == verdict.Missing && v.Kept && p.Silent && p.Policy.Evict:
		return set(corev1.ConditionUnknown, reasonSilent,
			fmt.Sprintf("no node of pool %s is heard; pods stay until it has been silent for %s", v.Pool, p.Policy.After))
	case v.State == verdict.Missing && v.Kept && p.Silent:
		return set(corev1.ConditionUnknown, reasonSilent, fmt.Sprintf("no node of pool %s is heard; pods stay", v.Pool))
	case v.State == verdict.Missing && p.Silent && p.GivenUp && !v.Dead:
		return set(corev1.ConditionUnknown, reasonGivenUp,
			fmt.Sprintf("no node of pool %s is heard for longer than %s; pods are evicted", v.Pool, p.Policy.After))
	case v.State == verdict.Missing && !v.Kept && before != nil && before.Status != corev1.ConditionFalse:
		return set(corev1.ConditionUnknown, reasonMissing,
			"no heartbeat of the node is heard, neither its own nor through its pool")
	}
	return nil
}
