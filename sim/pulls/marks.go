package pulls

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/workload"
)

const (
	markEvery    = 5 * time.Second
	markPatience = time.Minute // for the last one, after all pulls
)

// mark is a change in the cloud that all nodes are to see.
type mark struct {
	version uint64
	at      time.Time
}

// marks find out how long nodes wait for a change in the cloud: a client on each reads EndpointSlices as kube-proxy
// does, by its hub or straight.
type marks struct {
	marker *workload.Marker
	stop   []func()

	mu      sync.Mutex
	written []mark
	seen    map[string][]mark // by node: the versions of the marker that its client was shown, and when
}

// look starts a client on each node. They end with ctx.
func (c *column) look(ctx context.Context, admin kubernetes.Interface) (m *marks, err error) {
	m = &marks{seen: map[string][]mark{}}
	if m.marker, err = workload.NewMarker(ctx, admin); err != nil {
		return m, err
	}
	token, err := c.Site.Token(ctx, "kube-proxy")
	if err != nil {
		return m, err
	}
	for _, node := range c.nodes {
		e, err := c.Site.Endpoint(node, runtime.ClassPool)
		if err != nil {
			return m, err
		}
		client, err := kubernetes.NewForConfig(e.RESTConfig(token))
		if err != nil {
			return m, err
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		see := func(o any) { m.see(node, o, time.Now()) }
		informer := factory.Discovery().V1().EndpointSlices().Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: see, UpdateFunc: func(_, now any) { see(now) },
		}); err != nil {
			return m, err
		}
		factory.Start(ctx.Done())
		m.stop = append(m.stop, factory.Shutdown)
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return m, ctx.Err()
		}
	}
	return m, nil
}

// wait returns when all clients have ended.
func (m *marks) wait() {
	if m == nil {
		return
	}
	for _, stop := range m.stop {
		stop()
	}
}

func (m *marks) see(node string, o any, at time.Time) {
	slice, ok := o.(*discoveryv1.EndpointSlice)
	if !ok || slice.Name != workload.MarkerName {
		return
	}
	version, err := strconv.ParseUint(slice.ResourceVersion, 10, 64)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[node] = append(m.seen[node], mark{version, at})
}

// write marks now and then until ctx ends.
func (m *marks) write(ctx context.Context) error {
	for runner.Slept(ctx, markEvery) {
		at := time.Now()
		versions, err := m.marker.Write(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.written = append(m.written, mark{versions["endpointslices"], at})
		m.mu.Unlock()
	}
	return nil
}

// last reports how many nodes have seen the last mark.
func (m *marks) last(nodes []string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.written) == 0 {
		return len(nodes)
	}
	for _, node := range nodes {
		if _, ok := first(m.seen[node], m.written[len(m.written)-1]); ok {
			n++
		}
	}
	return n
}

// of are the marks so far, and when each node saw which.
func (m *marks) of(nodes []string) (written []mark, seen map[string][]mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen = make(map[string][]mark, len(nodes))
	for _, n := range nodes {
		seen[n] = slices.Clone(m.seen[n])
	}
	return slices.Clone(m.written), seen
}

// first is when a mark, or a later one, was seen.
func first(seen []mark, is mark) (at time.Time, ok bool) {
	i := slices.IndexFunc(seen, func(s mark) bool { return s.version >= is.version })
	if i < 0 {
		return at, false
	}
	return seen[i].at, true
}

// longest is how long the last node waited at most until it saw a mark, less the time in which it could not.
func (o outcome) longest() (longest time.Duration) {
	for node, seen := range o.seen {
		away := append(slices.Clone(o.cuts), o.away[node]...)
		for _, is := range o.written {
			at, ok := first(seen, is)
			if !ok {
				at = o.ended
			}
			wait := at.Sub(is.at)
			for _, a := range away {
				wait -= a.overlap(is.at, at)
			}
			longest = max(longest, wait)
		}
	}
	return longest
}

// settle waits until all nodes have seen the last mark. One that has not by then has waited for so long.
func (c *column) settle(ctx context.Context) error {
	_ = c.Until(ctx, markPatience, func() (bool, string) {
		n := c.marks.last(c.nodes)
		return n == len(c.nodes), fmt.Sprintf("waiting for nodes to see the last change: %d of %d have", n, len(c.nodes))
	})
	return ctx.Err()
}
