package certificates

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
)

const (
	sayEvery  = 24 * time.Hour // of the authority of a pool that ends
	watchEach = time.Hour      // after which a node is looked at anyway
)

// authorityEnds is what is told of an authority that ends soon.
func authorityEnds(pool string, end, now time.Time) (reason, text string) {
	if now.Before(end) {
		return contract.AuthorityEndsSoon,
			fmt.Sprintf("the authority of pool %s ends at %s, and has no successor: weir pki rotate --pool %[1]s", pool,
				end.UTC().Format(time.RFC3339))
	}
	return contract.AuthorityEnded,
		fmt.Sprintf(
			"the authority of pool %s has ended at %s: no certificate of the pool is valid any more; weir pki rotate "+
				"--pool %[1]s", pool, end.UTC().Format(time.RFC3339))
}

// WatchmanConfig is what a Watchman is made of. All fields are required.
type WatchmanConfig struct {
	Client client.Client // reads Nodes from a cache
	Events events.EventRecorder
	Clock  clock.PassiveClock
}

// Watchman tells of each node, by a condition and an Event, that one of its certificates ends soon, or the authority of
// its pool. Which certificates a node has its hub tells (package digest): that is true of those from files, too, and
// remains when the hub is away.
type Watchman struct {
	WatchmanConfig

	mu          sync.Mutex
	authorities map[string]time.Time // their ends, by pool
}

// NewWatchman returns one that does nothing yet.
func NewWatchman(c WatchmanConfig) *Watchman {
	return &Watchman{WatchmanConfig: c, authorities: map[string]time.Time{}}
}

// Authority takes note of when the authority of a pool ends.
func (w *Watchman) Authority(pool string, end time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.authorities[pool] = end
}

func (w *Watchman) ofPool(pool string) (end time.Time, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end, known = w.authorities[pool]
	return end, known
}

// Reconcile implements reconcile.Reconciler: a request is the name of a Node.
func (w *Watchman) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	n := &corev1.Node{}
	if err := w.Client.Get(ctx, q.NamespacedName, n); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	want, again := w.judge(n)
	if err := w.show(ctx, n, want); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if n.Labels[contract.NodePoolLabel] == "" && again.IsZero() {
		return reconcile.Result{}, nil
	}
	wait := watchEach
	if !again.IsZero() {
		wait = max(lag, min(wait, again.Sub(w.Clock.Now())))
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// judge is what the condition of a Node should be, nil if there is nothing to tell, and when that changes by itself.
func (w *Watchman) judge(n *corev1.Node) (want *corev1.NodeCondition, again time.Time) {
	now, pool := w.Clock.Now(), n.Labels[contract.NodePoolLabel]
	holds, err := digest.ParseHolding(n.Annotations[contract.HoldsAnnotation])
	if err != nil { // root there wrote it
		holds = digest.Holding{}
	}
	kind, end, again := holds.Ending(now)
	set := func(reason, text string) *corev1.NodeCondition {
		return &corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: reason, Message: text}
	}
	authority, known := w.ofPool(pool)
	switch {
	case kind != "" && now.Before(end):
		return set(contract.CertificateEndsSoon,
			fmt.Sprintf("the certificate of kind %s ends at %s and was not renewed: see "+
				"weir_certificate_failures_total of its hub", kind, end.UTC().Format(time.RFC3339))), again
	case kind != "":
		return set(contract.CertificateEnded, fmt.Sprintf("the certificate of kind %s has ended at %s and was not renewed",
			kind, end.UTC().Format(time.RFC3339))), again
	case known && authority.Sub(now) < digest.Soon:
		reason, text := authorityEnds(pool, authority, now)
		return set(reason, text), again
	case conditionOf(n) != nil:
		return &corev1.NodeCondition{
			Status: corev1.ConditionFalse, Reason: contract.CertificatesRenewed, Message: "no certificate of the node ends soon",
		}, again
	}
	return nil, again
}

func conditionOf(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == contract.CertificatesCondition {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// show sets the condition, which is merged by its type, and tells of it by an Event.
func (w *Watchman) show(ctx context.Context, n *corev1.Node, want *corev1.NodeCondition) error {
	before := conditionOf(n)
	if want == nil || before != nil && before.Status == want.Status && before.Reason == want.Reason &&
		before.Message == want.Message {
		return nil
	}
	now := metav1.NewTime(w.Clock.Now())
	want.Type, want.LastHeartbeatTime, want.LastTransitionTime = contract.CertificatesCondition, now, now
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
	about := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	if err := w.Client.Status().Patch(ctx, about, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return fmt.Errorf("set condition %s of node %s: %w", contract.CertificatesCondition, n.Name, err)
	}
	kind := corev1.EventTypeWarning
	if want.Status == corev1.ConditionFalse {
		kind = corev1.EventTypeNormal
	}
	about.TypeMeta, about.UID = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, n.UID
	w.Events.Eventf(about, nil, kind, want.Reason, "WatchCertificates", "%s", want.Message)
	return nil
}
