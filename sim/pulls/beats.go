package pulls

import (
	"context"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// beats notes when the cloud was shown that a node is alive: when the Lease of the node was renewed.
type beats struct {
	wait func() // until the watch has ended

	mu  sync.Mutex
	all map[string][]time.Time // by node
}

// listen watches Leases until ctx ends.
func listen(ctx context.Context, admin kubernetes.Interface) (*beats, error) {
	b := &beats{all: map[string][]time.Time{}}
	factory := informers.NewSharedInformerFactoryWithOptions(admin, 0, informers.WithNamespace(corev1.NamespaceNodeLease))
	if _, err := factory.Coordination().V1().Leases().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { b.see(nil, o, time.Now()) }, UpdateFunc: func(old, now any) { b.see(old, now, time.Now()) },
	}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	b.wait = factory.Shutdown
	return b, ctx.Err()
}

// see notes a Lease, if it was renewed since it was seen before.
func (b *beats) see(before, now any, at time.Time) {
	l, ok := now.(*coordinationv1.Lease)
	if !ok || l.Spec.RenewTime == nil {
		return
	}
	if old, ok := before.(*coordinationv1.Lease); ok && old.Spec.RenewTime.Equal(l.Spec.RenewTime) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[l.Name] = append(b.all[l.Name], at)
}

// of are the heartbeats of nodes so far. A node that was never heard has none.
func (b *beats) of(nodes []string) map[string][]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	some := make(map[string][]time.Time, len(nodes))
	for _, n := range nodes {
		some[n] = slices.Clone(b.all[n])
	}
	return some
}
