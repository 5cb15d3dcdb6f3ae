package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/manager/verdict"
)

const (
	podPage        = 250 // pods of one list
	releaseWorkers = 8
	mostPause      = time.Minute // after a release that failed: others have room meanwhile
)

// releaser releases nodes that are owed it. Its goroutines are those of group, which the keeper waits for.
type releaser struct {
	client  client.Client
	reader  client.Reader // not from the cache
	clock   clock.Clock
	board   *board
	settle  time.Duration // in which every kube-apiserver has seen a change of the ConfigMaps
	metrics *metrics
	log     *slog.Logger

	group errgroup.Group // with a limit

	mu   sync.Mutex
	owed map[string]*debt
}

// debt is of a node that is owed a release.
type debt struct {
	since time.Time     // when it was seen that the policies do not name it any more
	pause time.Duration // after a failure
	again time.Time     // not before
	busy  bool
}

// consider begins to release the nodes that are owed it, once no kube-apiserver can still act by an older list. What
// finds no room now is considered again.
func (r *releaser) consider(ctx context.Context, d verdict.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	maps.DeleteFunc(r.owed, func(name string, _ *debt) bool { return !d.Nodes[name].Owed })
	for _, name := range d.Record.Owed {
		o := r.owed[name]
		if o == nil {
			o = &debt{since: now}
			r.owed[name] = o
		}
		if o.busy || now.Sub(o.since) < r.settle || now.Before(o.again) {
			continue
		}
		o.busy = r.group.TryGo(func() error {
			paid := r.pay(ctx, name, d.Nodes[name])
			r.mu.Lock()
			defer r.mu.Unlock()
			if o.busy = false; !paid {
				o.pause = min(max(r.settle/5, 2*o.pause), mostPause)
				o.again = r.clock.Now().Add(o.pause)
			}
			return nil
		})
	}
}

func (r *releaser) pay(ctx context.Context, name string, v verdict.Verdict) (paid bool) {
	if err := r.release(ctx, name, v.Heard); err != nil {
		if ctx.Err() == nil {
			r.log.Error("cannot release a node; trying again", "node", name, "err", err)
		}
		return false
	}
	r.board.tell(func(_ time.Time, m *verdict.Machine) { m.Done(name) })
	r.metrics.releases.Inc()
	r.log.Info("released", "node", name, "pool", v.Pool, "dead", v.Dead)
	return true
}

// release makes up for what stock controllers tried while the node was kept and do not try again: its pods are marked
// as not ready, and the taint by which they are evicted is taken away and set again, so that taint eviction begins
// again for each pod, with the time that the pod tolerates it. A new time in the taint would not do: what taint
// eviction has begun to count and not tried yet it counts on from the old one, though the node was heard since. Where
// it was not, and no pod's time is over, that count is right and stays: a pool that is given up is not kept for longer
// than that asks for. If the cloud holds the node for alive there is nothing to make up for.
func (r *releaser) release(ctx context.Context, name string, heard time.Time) error {
	var n corev1.Node
	if err := r.reader.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !unreachable(&n) {
		return nil
	}
	taint := taintOf(&n, corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	over, err := r.markPods(ctx, name, taint)
	if err != nil {
		return err
	}
	if taint == nil {
		return nil // it will come, and evict then
	}
	if !over && taint.TimeAdded != nil && !heard.IsZero() && heard.Before(taint.TimeAdded.Time) {
		return nil
	}
	anew := *taint
	without := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.MatchTaint(taint) })
	if err := patchTaints(ctx, r.client, &n, without); err != nil {
		return fmt.Errorf("take away taint %s of node %s: %w", taint.Key, name, err)
	}
	select {
	case <-r.clock.After(r.settle / 5): // taint eviction sees it
	case <-ctx.Done():
		return ctx.Err() // the node lifecycle controller sets it again
	}
	return r.taint(ctx, name, anew)
}

// taint sets a taint again, unless the node lifecycle controller has, or the cloud holds the node for alive by now.
func (r *releaser) taint(ctx context.Context, name string, taint corev1.Taint) error {
	var n corev1.Node
	if err := r.reader.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !unreachable(&n) || taintOf(&n, taint.Key, taint.Effect) != nil {
		return nil
	}
	now := metav1.NewTime(r.clock.Now())
	taint.TimeAdded = &now
	if err := patchTaints(ctx, r.client, &n, append(slices.Clone(n.Spec.Taints), taint)); err != nil {
		return fmt.Errorf("set taint %s of node %s again: %w", taint.Key, name, err)
	}
	return nil
}

// markPods marks the pods of a node as not ready, and reports whether one has tolerated its taint for as long as it
// does: taint eviction may have tried that one.
func (r *releaser) markPods(ctx context.Context, node string, taint *corev1.Taint) (over bool, err error) {
	page := client.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node), Limit: podPage}
	var errs []error
	for {
		var pods corev1.PodList
		if err := r.reader.List(ctx, &pods, &page); err != nil {
			return over, fmt.Errorf("list pods of node %s: %w", node, err)
		}
		for i := range pods.Items {
			over = over || toleratedEnough(pods.Items[i].Spec.Tolerations, taint, r.clock.Now())
			switch err := r.markPod(ctx, &pods.Items[i]); {
			case apierrors.IsNotFound(err):
			case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
				// it will never do, and keeps no other pod from its eviction.
				r.log.Error("a pod of a node that is released cannot be marked as not ready, and is left as it is", "node", node,
					"err", err)
			case err != nil:
				errs = append(errs, err)
			}
		}
		if page.Continue = pods.Continue; page.Continue == "" {
			return over, errors.Join(errs...)
		}
	}
}

// clocksApart is by what the clock of anyone who set a taint may be behind or ahead.
const clocksApart = 5 * time.Second

// toleratedEnough reports whether a pod has tolerated a taint for as long as it does, by the least of the times that it
// tolerates it, as taint eviction takes it.
func toleratedEnough(tolerations []corev1.Toleration, taint *corev1.Taint, now time.Time) bool {
	if taint == nil || taint.TimeAdded == nil {
		return false
	}
	tolerates, least := false, time.Duration(math.MaxInt64)
	for i := range tolerations {
		t := &tolerations[i]
		if !t.ToleratesTaint(klog.Background(), taint, true) {
			continue
		}
		tolerates = true
		if t.TolerationSeconds != nil {
			least = min(least, time.Duration(max(*t.TolerationSeconds, 0))*time.Second)
		}
	}
	return !tolerates || now.Sub(taint.TimeAdded.Time)+clocksApart >= least
}

// markPod does what the node lifecycle controller does to a pod of a node that it does not hear, unless the pod changed
// meanwhile.
func (r *releaser) markPod(ctx context.Context, p *corev1.Pod) error {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if i < 0 || p.Status.Conditions[i].Status != corev1.ConditionTrue {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID, "resourceVersion": p.ResourceVersion},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": corev1.PodReady, "status": corev1.ConditionFalse, "lastTransitionTime": metav1.NewTime(r.clock.Now()),
		}}},
	})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	if err := r.client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return fmt.Errorf("mark pod %s/%s as not ready: %w", p.Namespace, p.Name, err)
	}
	return nil
}
