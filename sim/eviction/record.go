package eviction

import (
	"context"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/weir-edge/weir/impl/contract"
)

// recorder notes what the cloud shows, at the time at which it shows it.
type recorder struct {
	nodes []string

	mu         sync.Mutex
	pods       map[types.UID]*Pod
	ready      map[string][]Flip
	marks      map[string][]Mark
	heartbeats map[string][]Heartbeat
	renewed    map[string]time.Time // the latest renewal time of each Lease
}

func newRecorder(nodes []string) *recorder {
	return &recorder{
		nodes: nodes, pods: map[types.UID]*Pod{}, ready: map[string][]Flip{}, marks: map[string][]Mark{},
		heartbeats: map[string][]Heartbeat{}, renewed: map[string]time.Time{},
	}
}

// start watches pods, nodes and their Leases until ctx ends, and returns when all of them were seen once. The factory's
// goroutines end with wait.
func (r *recorder) start(ctx context.Context, admin kubernetes.Interface) (wait func(), err error) {
	all := informers.NewSharedInformerFactory(admin, 0)
	leases := informers.NewSharedInformerFactoryWithOptions(admin, 0, informers.WithNamespace(contract.NodeLeaseNamespace))
	for _, x := range []struct {
		informer cache.SharedIndexInformer
		see      func(any)
	}{
		{all.Core().V1().Pods().Informer(), r.seePod},
		{all.Core().V1().Nodes().Informer(), r.seeNode},
		{leases.Coordination().V1().Leases().Informer(), r.seeLease},
	} {
		if _, err := x.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    x.see,
			UpdateFunc: func(_, now any) { x.see(now) },
			DeleteFunc: func(gone any) {
				if last, ok := gone.(cache.DeletedFinalStateUnknown); ok {
					gone = last.Obj
				}
				if p, ok := gone.(*corev1.Pod); ok {
					r.podGone(p)
				}
			},
		}); err != nil {
			return nil, err
		}
	}
	all.Start(ctx.Done())
	leases.Start(ctx.Done())
	all.WaitForCacheSync(ctx.Done())
	leases.WaitForCacheSync(ctx.Done())
	return func() { all.Shutdown(); leases.Shutdown() }, ctx.Err()
}

func (r *recorder) seePod(o any) {
	p, ok := o.(*corev1.Pod)
	if !ok || !slices.Contains(r.nodes, p.Spec.NodeName) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.pods[p.UID]
	if known == nil {
		known = &Pod{Name: p.Name, Node: p.Spec.NodeName, Since: time.Now(), Stays: stays(p)}
		r.pods[p.UID] = known
	}
	if p.DeletionTimestamp != nil && known.Deleted.IsZero() {
		known.Deleted = time.Now()
	}
}

// stays reports whether stock Kubernetes never evicts a pod from a node that is unreachable.
func stays(p *corev1.Pod) bool {
	taint := &corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.TolerationSeconds == nil && t.ToleratesTaint(klog.Background(), taint, false)
	})
}

func (r *recorder) podGone(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.pods[p.UID]; known != nil && known.Deleted.IsZero() {
		known.Deleted = time.Now()
	}
}

func (r *recorder) seeNode(o any) {
	n, ok := o.(*corev1.Node)
	if !ok || !slices.Contains(r.nodes, n.Name) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if f := (Flip{At: now, Ready: nodeReady(n)}); len(r.ready[n.Name]) == 0 ||
		r.ready[n.Name][len(r.ready[n.Name])-1].Ready != f.Ready {
		r.ready[n.Name] = append(r.ready[n.Name], f)
	}
	m := Mark{At: now, Taint: tainted(n), Condition: shownCutOff(n)}
	if last := r.marks[n.Name]; len(last) == 0 || last[len(last)-1].Taint != m.Taint ||
		last[len(last)-1].Condition != m.Condition {
		r.marks[n.Name] = append(last, m)
	}
}

func (r *recorder) seeLease(o any) {
	l, ok := o.(*coordinationv1.Lease)
	if !ok || !slices.Contains(r.nodes, l.Name) || l.Spec.RenewTime == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Spec.RenewTime.After(r.renewed[l.Name]) {
		r.renewed[l.Name] = l.Spec.RenewTime.Time
		r.heartbeats[l.Name] = append(r.heartbeats[l.Name],
			Heartbeat{At: time.Now(), Delegated: l.Annotations[contract.DelegateHeartbeat] == "true"})
	}
}

// into copies what was seen to a history.
func (r *recorder) into(h *History) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.Ready, h.Marks, h.Heartbeats = map[string][]Flip{}, map[string][]Mark{}, map[string][]Heartbeat{}
	for _, n := range r.nodes {
		h.Ready[n], h.Marks[n], h.Heartbeats[n] = slices.Clone(r.ready[n]), slices.Clone(r.marks[n]),
			slices.Clone(r.heartbeats[n])
	}
	for _, p := range r.pods {
		h.Pods = append(h.Pods, *p)
	}
	slices.SortFunc(h.Pods, func(a, b Pod) int { return a.Since.Compare(b.Since) })
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == contract.CutOffTaint && t.Effect == corev1.TaintEffectNoSchedule
	})
}

func shownCutOff(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == contract.CutOffCondition && c.Status == corev1.ConditionTrue
	})
}
