package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

const (
	lag     = 100 * time.Millisecond // after which the cache should have heard of what was written
	recheck = time.Minute            // how often it is looked whether yurt-manager runs
	rival   = "yurt-manager"         // its Lease in contract.ManagerNamespace
)

// keeper keeps one NodePool after another. A request is the name of one.
type keeper struct {
	publisher
	events  events.EventRecorder
	clock   clock.PassiveClock
	metrics *Metrics
	log     *slog.Logger
	silent  func(pool string) bool
	aside   asides
}

// asides remembers whether yurt-manager runs. Its methods are called by one worker.
type asides struct {
	until time.Time // the answer counts
	runs  bool
}

// Reconcile implements reconcile.Reconciler.
func (k *keeper) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	if runs, err := k.rivalled(ctx); err != nil || runs {
		return reconcile.Result{RequeueAfter: recheck}, err
	}
	var p nodepool.NodePool
	if err := k.client.Get(ctx, r.NamespacedName, &p); err != nil {
		if apierrors.IsNotFound(err) {
			k.metrics.synced.DeleteLabelValues(r.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	var nodes corev1.NodeList
	if err := k.client.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: p.Name}); err != nil {
		return reconcile.Result{}, err
	}
	was := p.Status.DeepCopy()
	k.look(&p, nodes.Items, k.silent(p.Name))
	failed := k.publish(ctx, &p)
	k.tell(&p, failed)
	if !equality.Semantic.DeepEqual(was, &p.Status) {
		if err := k.client.Status().Update(ctx, &p); err != nil {
			failed = errors.Join(failed, fmt.Errorf("status of pool %s: %w", p.Name, err))
		} else if !slices.Equal(was.LeaderEndpoints, p.Status.LeaderEndpoints) {
			k.elected(&p)
		}
	}
	return k.again(failed)
}

// again is when to look again after a failure.
func (k *keeper) again(failed error) (reconcile.Result, error) {
	var foreign *foreignError
	var name *nameError
	switch {
	case errors.As(failed, &name): // nothing will change that
		return reconcile.Result{}, nil
	case errors.As(failed, &foreign):
		return reconcile.Result{RequeueAfter: recheck}, nil
	case errors.Is(failed, errBehind), apierrors.IsConflict(failed):
		return reconcile.Result{RequeueAfter: lag}, nil
	}
	return reconcile.Result{}, failed
}

// look writes into the status what the nodes of a pool say.
func (k *keeper) look(p *nodepool.NodePool, nodes []corev1.Node, silent bool) {
	s := &p.Status
	s.Nodes, s.ReadyNodeNum, s.UnreadyNodeNum = nil, 0, 0
	for i := range nodes {
		s.Nodes = append(s.Nodes, nodes[i].Name)
		if is(&nodes[i], corev1.NodeReady) {
			s.ReadyNodeNum++
		} else {
			s.UnreadyNodeNum++
		}
	}
	slices.Sort(s.Nodes)
	leaders := elect(p, nodes, silent)
	if !slices.Equal(leaders, s.LeaderEndpoints) {
		s.LeaderLastElectedTime = &metav1.Time{Time: k.clock.Now().Truncate(time.Second)}
	}
	s.LeaderEndpoints, s.LeaderNum = leaders, int32(len(leaders)) //nolint:gosec // of nodes
	k.set(p, ready(p, len(nodes), silent))
}

// ready is the condition LeaderReady of a pool.
func ready(p *nodepool.NodePool, nodes int, silent bool) metav1.Condition {
	c := metav1.Condition{Type: nodepool.LeaderReady, Status: metav1.ConditionFalse}
	want, have := wants(p.Spec), len(p.Status.LeaderEndpoints)
	switch {
	case !p.Spec.EnableLeaderElection:
		c.Reason, c.Message = "NotAsked", "enableLeaderElection is false"
	case !p.Spec.InterConnectivity:
		c.Reason, c.Message = "NotConnected", "interConnectivity is false: nodes that do not reach each other have no leader"
	case nodes == 0:
		c.Reason, c.Message = "NoNodes", fmt.Sprintf("no Node has the label %s=%s", contract.NodePoolLabel, p.Name)
	case silent && have > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "PoolSilent", "no node of the pool is heard: the leaders stay as they were"
	case have == 0:
		c.Reason, c.Message = "NobodyMayLead", "no node is Ready, reaches the cloud, has an internal address and is selected"
	case have < want:
		c.Reason, c.Message = "TooFew", fmt.Sprintf("%d of %d leaders", have, want)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Elected", fmt.Sprintf("%d of %d leaders", have, want)
	}
	return c
}

// tell writes into the status what became of leader-hub-<pool>.
func (k *keeper) tell(p *nodepool.NodePool, failed error) {
	c := metav1.Condition{Type: nodepool.LeaderHubSynced, Status: metav1.ConditionTrue, Reason: "Synced", Message: contract.LeaderHubPrefix + p.Name}
	var foreign *foreignError
	var name *nameError
	switch {
	case failed == nil:
	case errors.As(failed, &foreign):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "TakenName", strings.ReplaceAll(failed.Error(), "\n", "; ") // all of them
	case errors.As(failed, &name):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "BadName", name.Error()
	case errors.Is(failed, errBehind), apierrors.IsConflict(failed):
		return // a moment later it is known
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "WriteFailed", failed.Error()
	}
	if k.set(p, c) && c.Status != metav1.ConditionTrue {
		k.events.Eventf(p, nil, corev1.EventTypeWarning, c.Reason, "Publish", "%s", c.Message)
	}
	synced := 0.0
	if c.Status == metav1.ConditionTrue {
		synced = 1
	}
	k.metrics.synced.WithLabelValues(p.Name).Set(synced)
}

// set puts a condition into the status, and tells whether its state changed.
func (k *keeper) set(p *nodepool.NodePool, c metav1.Condition) bool {
	was := meta.FindStatusCondition(p.Status.Conditions, c.Type)
	changed := was == nil || was.Status != c.Status || was.Reason != c.Reason
	c.LastTransitionTime = metav1.Time{Time: k.clock.Now().Truncate(time.Second)} // set counts it only when the status changes
	meta.SetStatusCondition(&p.Status.Conditions, c)
	return changed
}

// elected counts and tells of new leaders.
func (k *keeper) elected(p *nodepool.NodePool) {
	have, want := len(p.Status.LeaderEndpoints), wants(p.Spec)
	result, names := "elected", []string{}
	switch {
	case have == 0:
		result = "none"
	case have < want:
		result = "short"
	}
	for _, l := range p.Status.LeaderEndpoints {
		names = append(names, l.NodeName)
	}
	k.metrics.elections.WithLabelValues(result).Inc()
	k.log.Info("leader hubs changed", "pool", p.Name, "leaders", names, "wanted", want)
	k.events.Eventf(p, nil, corev1.EventTypeNormal, "LeadersChanged", "Elect", "%d of %d leaders: %v", have, want, names)
}

// rivalled tells whether yurt-manager runs.
func (k *keeper) rivalled(ctx context.Context) (bool, error) {
	now := k.clock.Now()
	if now.Before(k.aside.until) {
		return k.aside.runs, nil
	}
	var l coordinationv1.Lease
	err := k.reader.Get(ctx, client.ObjectKey{Namespace: contract.ManagerNamespace, Name: rival}, &l)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("the Lease of yurt-manager: %w", err)
	}
	runs := err == nil && holds(l.Spec, now)
	if runs != k.aside.runs {
		k.log.Warn("NodePools are kept by one manager only", "yurt-manager runs", runs)
	}
	k.aside = asides{now.Add(recheck), runs}
	k.metrics.aside.Set(0)
	if runs {
		k.metrics.aside.Set(1)
	}
	return runs, nil
}

// holds tells whether a Lease is held. Clocks may differ by as much as it lasts.
func holds(l coordinationv1.LeaseSpec, now time.Time) bool {
	if l.HolderIdentity == nil || *l.HolderIdentity == "" || l.RenewTime == nil || l.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(l.RenewTime.Add(2*time.Duration(*l.LeaseDurationSeconds)*time.Second + recheck))
}
