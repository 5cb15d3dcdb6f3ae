package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/manager/coordinators"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// lag is after which the cache should have heard of what was written, by this process or another.
const lag = 100 * time.Millisecond

// keeper keeps one pool after another: its NodePool and its Pool. A request is the name of one.
type keeper struct {
	publisher
	events  events.EventRecorder
	clock   clock.PassiveClock
	metrics *Metrics
	log     *slog.Logger
	seen    func(pool string) Seen
	told    func(node string) (Entry, bool)
	serves  func(nodepool.Resource) (kind string, err error) // see scopeOf
	rival   *rival
	granter granter
	places  *coordinators.Keeper
	gate    func() directory.Gate
	plain   bool // the CRD of NodePools is OpenYurt's, and keeps no field that is Weir's own
}

// Reconcile implements reconcile.Reconciler.
func (k *keeper) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	if runs, err := k.rival.runs(ctx); err != nil || runs {
		return reconcile.Result{RequeueAfter: recheck}, err
	}
	v, err := k.read(ctx, r.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	failed := errors.Join(k.granter.keep(ctx, v), k.place(ctx, v))
	failed = errors.Join(failed, k.keepNodePool(ctx, v))
	failed = errors.Join(failed, k.keepPool(ctx, v))
	if failed == nil && v.placed.Again > 0 {
		return reconcile.Result{RequeueAfter: v.placed.Again}, nil
	}
	// a resource may be installed later, a node given up.
	if failed == nil && (v.scope.lacking() || v.placed.State.Status == metav1.ConditionFalse) {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	if failed == nil && v.own != nil {
		if after := lapses(v.own.Status.Hubs, k.clock.Now()); after > 0 {
			return reconcile.Result{RequeueAfter: after + time.Second}, nil
		}
	}
	return k.again(failed)
}

// read gathers what is known of a pool.
func (k *keeper) read(ctx context.Context, name string) (*view, error) {
	v := &view{
		name: name, nodepool: &nodepool.NodePool{}, own: &poolv1.Pool{}, seen: k.seen(name), told: k.told, gate: k.gate(),
	}
	switch err := k.client.Get(ctx, client.ObjectKey{Name: name}, v.nodepool); {
	case apierrors.IsNotFound(err):
		v.nodepool = nil
		k.metrics.synced.DeleteLabelValues(name)
	case err != nil:
		return nil, err
	case !v.nodepool.DeletionTimestamp.IsZero():
		v.nodepool = nil
	}
	switch err := k.client.Get(ctx, client.ObjectKey{Name: name}, v.own); {
	case apierrors.IsNotFound(err):
		v.own = nil
	case err != nil:
		return nil, err
	case !v.own.DeletionTimestamp.IsZero():
		v.own = nil
	}
	var nodes corev1.NodeList
	if err := k.client.List(ctx, &nodes, client.MatchingLabels{contract.NodePoolLabel: name}); err != nil {
		return nil, err
	}
	v.nodes = nodes.Items
	slices.SortFunc(v.nodes, func(a, b corev1.Node) int { // the cache gives them in any order, and a status names some
		return strings.Compare(a.Name, b.Name)
	})
	if v.nodepool != nil {
		v.scope = scopeOf(v.nodepool.Spec.PoolScopeMetadata, k.serves)
	}
	v.plan = planOf(v.nodepool, v.own)
	return v, nil
}

// place runs the coordinator, if the Pool asks weir-manager to, and says to the plan where it is.
func (k *keeper) place(ctx context.Context, v *view) error {
	p := coordinators.Pool{Name: v.name, Nodes: v.nodes, Silent: v.seen.Silent}
	if v.nodepool != nil && v.plan.mode == poolv1.ModeCoordinator && coordinators.Runs(v.own) {
		p.Own = v.own
	}
	placed, err := k.places.Keep(ctx, p)
	if err != nil {
		if p.Own != nil { // nobody is sent away for want of an answer
			v.plan.coordinators, v.placed = p.Own.Status.Coordinators, coordinators.Kept(p.Own)
			v.placed.State = metav1.Condition{
				Type: poolv1.CoordinatorPlaced, Status: metav1.ConditionFalse, Reason: "WriteFailed", Message: err.Error(),
			}
			if errors.Is(err, coordinators.ErrNoImage) {
				v.placed.State.Reason = "NoImage"
			}
		}
		return err
	}
	if v.placed = placed; p.Own != nil {
		v.plan.coordinators = placed.Servers
	}
	return nil
}

// keepNodePool keeps the status of the NodePool, if there is one, and leader-hub-<pool>.
func (k *keeper) keepNodePool(ctx context.Context, v *view) error {
	p := v.nodepool
	if p == nil {
		return nil
	}
	was := p.Status.DeepCopy()
	k.look(p, v)
	failed := k.publish(ctx, v)
	k.tell(p, failed)
	if equality.Semantic.DeepEqual(was, &p.Status) {
		return failed
	}
	leaders, heard := p.Status.LeaderEndpoints, p.Status.HeardNodeNum
	if err := k.client.Status().Update(ctx, p); err != nil {
		return errors.Join(failed, fmt.Errorf("status of NodePool %s: %w", p.Name, err))
	}
	k.plain = k.plain || heard != nil && p.Status.HeardNodeNum == nil
	if !slices.Equal(was.LeaderEndpoints, leaders) {
		k.elected(p)
	}
	return failed
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

// keepPool keeps the status of the Pool, if there is one.
func (k *keeper) keepPool(ctx context.Context, v *view) error {
	if v.own == nil {
		return nil
	}
	was := v.own.Status.DeepCopy()
	describe(v, k.clock.Now())
	if equality.Semantic.DeepEqual(was, &v.own.Status) {
		return nil
	}
	if err := k.client.Status().Update(ctx, v.own); err != nil {
		return fmt.Errorf("status of Pool %s: %w", v.name, err)
	}
	return nil
}

// look writes into the status what is known of the nodes of a pool.
func (k *keeper) look(p *nodepool.NodePool, v *view) {
	s := &p.Status
	s.Nodes, s.ReadyNodeNum, s.UnreadyNodeNum = nil, 0, 0
	for i := range v.nodes {
		s.Nodes = append(s.Nodes, v.nodes[i].Name)
		if is(&v.nodes[i], corev1.NodeReady) {
			s.ReadyNodeNum++
		} else {
			s.UnreadyNodeNum++
		}
	}
	slices.Sort(s.Nodes)
	leaders := elect(p, v.nodes, v.seen.Silent)
	if !slices.Equal(leaders, s.LeaderEndpoints) {
		s.LeaderLastElectedTime = &metav1.Time{Time: k.clock.Now().Truncate(time.Second)}
	}
	s.LeaderEndpoints, s.LeaderNum = leaders, int32(len(leaders)) //nolint:gosec // of nodes
	if !k.plain {
		s.Mode = v.plan.mode
		if !v.seen.Unsure {
			s.HeardNodeNum, s.CutOffNodeNum, s.SilentSince = number(v.seen.Heard), number(v.seen.CutOff), since(v.seen)
		}
	}
	now := k.clock.Now()
	set(&s.Conditions, ready(p, len(v.nodes), v.seen.Silent), now)
	set(&s.Conditions, v.scope.condition(), now)
	set(&s.Conditions, AttributesCondition(p.Spec), now)
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
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "PoolSilent",
			"no node of the pool is heard: the leaders stay as they were"
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
	c := metav1.Condition{
		Type: nodepool.LeaderHubSynced, Status: metav1.ConditionTrue, Reason: "Synced", Message: contract.LeaderHubPrefix +
			p.Name,
	}
	var foreign *foreignError
	var name *nameError
	switch {
	case failed == nil:
	case errors.As(failed, &foreign):
		// all of them.
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "TakenName", strings.ReplaceAll(failed.Error(), "\n", "; ")
	case errors.As(failed, &name):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "BadName", name.Error()
	case errors.Is(failed, errBehind), apierrors.IsConflict(failed):
		return // a moment later it is known
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "WriteFailed", failed.Error()
	}
	if set(&p.Status.Conditions, c, k.clock.Now()) && c.Status != metav1.ConditionTrue {
		k.events.Eventf(p, nil, corev1.EventTypeWarning, c.Reason, "Publish", "%s", c.Message)
	}
	synced := 0.0
	if c.Status == metav1.ConditionTrue {
		synced = 1
	}
	k.metrics.synced.WithLabelValues(p.Name).Set(synced)
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
