package autonomy

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// recorder notes what the cloud shows of pods.
type recorder struct {
	wait func()

	mu      sync.Mutex
	pods    map[string]*corev1.Pod
	history map[types.UID]*history
	double  int
}

// history is what a pod's status has been.
type history struct {
	seen     map[string]bool // states of its container, but for the last
	last     string
	restarts int32
	ended    bool // the pod had finished
}

// record watches pods until ctx ends, and returns when all were seen once.
func record(ctx context.Context, admin kubernetes.Interface) (*recorder, error) {
	r := &recorder{pods: map[string]*corev1.Pod{}, history: map[types.UID]*history{}}
	all := informers.NewSharedInformerFactoryWithOptions(admin, 0, informers.WithNamespace(corev1.NamespaceDefault))
	pods := all.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.see,
		UpdateFunc: func(_, now any) { r.see(now) },
		DeleteFunc: func(gone any) {
			if last, ok := gone.(cache.DeletedFinalStateUnknown); ok {
				gone = last.Obj
			}
			if p, ok := gone.(*corev1.Pod); ok {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.pods, p.Name)
			}
		},
	}); err != nil {
		return nil, err
	}
	all.Start(ctx.Done())
	all.WaitForCacheSync(ctx.Done())
	r.wait = all.Shutdown
	return r, ctx.Err()
}

// pod is what the cloud says of one; nil: it does not exist. It must not be changed.
func (r *recorder) pod(name string) *corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[name]
}

func (r *recorder) see(o any) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[p.Name] = p
	h := r.history[p.UID]
	if h == nil {
		h = &history{seen: map[string]bool{}}
		r.history[p.UID] = h
	}
	if h.add(p) {
		r.double++
	}
}

// add notes a status; wrong: it went back to what was before, so that a write came twice or late.
func (h *history) add(p *corev1.Pod) (wrong bool) {
	if len(p.Status.ContainerStatuses) != 1 {
		return false
	}
	s := p.Status.ContainerStatuses[0]
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	state := fmt.Sprint(s.RestartCount, s.ContainerID, s.State.Running != nil, s.State.Terminated != nil, ended)
	if state == h.last {
		return false
	}
	wrong = h.seen[state] || s.RestartCount < h.restarts || h.ended && !ended
	h.seen[state], h.last, h.restarts, h.ended = true, state, max(h.restarts, s.RestartCount), h.ended || ended
	return wrong
}

// doubled counts statuses that went back.
func (r *recorder) doubled() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.double
}
