package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/reverse"
)

// places knows which hosts are of which pool.
type places struct {
	nodes, told, services *cache.ListWatch

	mu    sync.RWMutex
	hosts map[string]map[string]reverse.Place // of nodes: by host, and by the name of the node
	named map[string][]reverse.Span           // spec.reach, by pool
	own   map[string][]netip.Prefix           // of Services, by the name of the ServiceCIDR: never of a pool
	// have tells that what is followed has been listed.
	have [3]func() bool
}

func newPlaces(c *rest.Config) (*places, error) {
	c = rest.CopyConfig(c)
	c.WarningHandlerWithContext = rest.NoWarnings{} // Endpoints are deprecated, and hubs go by them
	kube, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	told := meta.Resource(corev1.SchemeGroupVersion.WithResource("endpoints")).Namespace(contract.ManagerNamespace)
	return &places{
		nodes: listWatch(kube.CoreV1().Nodes()), told: listWatch(told),
		services: listWatch(kube.NetworkingV1().ServiceCIDRs()),
		hosts:    map[string]map[string]reverse.Place{}, named: map[string][]reverse.Span{},
		own: map[string][]netip.Prefix{},
	}, nil
}

// listWatch is what an informer lists and watches by a client of one resource.
func listWatch[L runtime.Object](by interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return by.List(ctx, o)
		},
		WatchFuncWithContext: by.Watch,
	}
}

// run follows all until ctx ends.
func (x *places) run(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	follow := func(i int, from *cache.ListWatch, kind runtime.Object, less cache.TransformFunc, on func(_, _ any)) {
		_, c := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: from, ObjectType: kind, Transform: less, Handler: cache.ResourceEventHandlerFuncs{
				AddFunc:    func(o any) { on(nil, o) },
				UpdateFunc: on,
				DeleteFunc: func(o any) {
					if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
						o = last.Obj
					}
					on(o, nil)
				},
			},
		})
		x.mu.Lock()
		x.have[i] = c.HasSynced
		x.mu.Unlock()
		all.Go(func() error {
			c.RunWithContext(ctx)
			return nil
		})
	}
	follow(0, x.nodes, &corev1.Node{}, lessNode, func(before, now any) {
		x.node(is[*corev1.Node](before), is[*corev1.Node](now))
	})
	follow(1, x.told, &metav1.PartialObjectMetadata{}, lessTold, func(before, now any) {
		x.tell(is[*metav1.PartialObjectMetadata](before), is[*metav1.PartialObjectMetadata](now))
	})
	follow(2, x.services, &networkingv1.ServiceCIDR{}, nil, func(before, now any) {
		x.service(is[*networkingv1.ServiceCIDR](before), is[*networkingv1.ServiceCIDR](now))
	})
	return all.Wait()
}

// is is an object of a type, or its zero value.
func is[T any](o any) T {
	t, _ := o.(T)
	return t
}

// lessNode keeps of a Node what says where it is.
func lessNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, ResourceVersion: n.ResourceVersion,
			Labels: map[string]string{contract.NodePoolLabel: n.Labels[contract.NodePoolLabel]},
		},
		Status: corev1.NodeStatus{Addresses: n.Status.Addresses},
	}, nil
}

// lessTold keeps spec.reach of what a pool is told.
func lessTold(o any) (any, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	less := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion,
	}}
	if reach, ok := m.Annotations[contract.LeaderHubReach]; ok {
		less.Annotations = map[string]string{contract.LeaderHubReach: reach}
	}
	return less, nil
}

// hostsOf are the hosts of a node, and where each is.
func hostsOf(n *corev1.Node) map[string]reverse.Place {
	if n == nil {
		return nil
	}
	var at netip.Addr
	all, names := map[string]reverse.Place{}, []string{n.Name}
	in := reverse.Place{Pool: n.Labels[contract.NodePoolLabel], Node: n.Name}
	for _, a := range n.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		switch {
		case a.Type == corev1.NodeHostName && err != nil: // an address would say nothing that InternalIP does not
			names = append(names, a.Address)
		case a.Type == corev1.NodeInternalIP && err == nil:
			in.Addr = ip
			all[ip.String()] = in
			if !at.IsValid() {
				at = ip
			}
		}
	}
	for _, name := range names {
		if _, is := all[name]; !is && at.IsValid() {
			in.Addr = at
			all[name] = in
		}
	}
	return all
}

func (x *places) node(before, now *corev1.Node) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for host, in := range hostsOf(before) {
		if delete(x.hosts[host], in.Node); len(x.hosts[host]) == 0 {
			delete(x.hosts, host)
		}
	}
	for host, in := range hostsOf(now) {
		if x.hosts[host] == nil {
			x.hosts[host] = map[string]reverse.Place{}
		}
		x.hosts[host][in.Node] = in
	}
}

func (x *places) tell(before, now *metav1.PartialObjectMetadata) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if before != nil {
		if pool, ok := strings.CutPrefix(before.Name, contract.LeaderHubPrefix); ok {
			delete(x.named, pool)
		}
	}
	if now == nil {
		return
	}
	pool, ok := strings.CutPrefix(now.Name, contract.LeaderHubPrefix)
	if text := now.Annotations[contract.LeaderHubReach]; ok && text != "" {
		for s := range strings.SplitSeq(text, ",") {
			if span, err := reverse.ParseSpan(s); err == nil {
				x.named[pool] = append(x.named[pool], span)
			}
		}
	}
}

func (x *places) service(before, now *networkingv1.ServiceCIDR) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if before != nil {
		delete(x.own, before.Name)
	}
	if now != nil {
		for _, c := range now.Spec.CIDRs {
			if p, err := netip.ParsePrefix(c); err == nil {
				x.own[now.Name] = append(x.own[now.Name], p)
			}
		}
	}
}

// isOwn reports whether an address is of the cloud's own: of a Service, or of a node of no pool; x.mu is held.
func (x *places) isOwn(host string, a netip.Addr) bool {
	for _, all := range x.own {
		if slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return true
		}
	}
	for _, in := range x.hosts[host] {
		if in.Pool == "" {
			return true
		}
	}
	return false
}

// of is where a host is, as reverse.FrontConfig.Place wants it.
func (x *places) of(host string) (reverse.Place, error) {
	x.mu.RLock()
	all := x.have
	x.mu.RUnlock()
	// Without x.mu: with many events to come an informer holds its own lock while it handles one, which waits for x.mu.
	for _, have := range all {
		if have == nil || !have() {
			return reverse.Place{}, errors.New("this gate does not know yet which nodes there are: try again")
		}
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	a, err := netip.ParseAddr(host)
	if err == nil {
		host = a.String()
	}
	if in, ok := x.hosts[host][host]; ok && !a.IsValid() && in.Pool != "" {
		return in, nil // others may say that it is their Hostname: a kubelet writes that itself
	}
	if x.isOwn(host, a) {
		return reverse.Place{}, nil
	}
	if in, ok, err := only(host, x.hosts[host]); ok || err != nil || !a.IsValid() {
		return in, err
	}
	pools := map[string]reverse.Place{}
	for pool, spans := range x.named {
		// Its leader knows the ports.
		if slices.ContainsFunc(spans, func(s reverse.Span) bool { return s.Prefix.Contains(a) }) {
			pools[pool] = reverse.Place{Pool: pool, Addr: a}
		}
	}
	in, _, err := only(host, pools)
	return in, err
}

// only is the one place of a host.
func only(host string, all map[string]reverse.Place) (in reverse.Place, ok bool, err error) {
	names := slices.Sorted(maps.Keys(all))
	switch len(names) {
	case 0:
		return reverse.Place{}, false, nil
	case 1:
		return all[names[0]], true, nil
	}
	a, b := all[names[0]], all[names[1]]
	if a.Node == "" {
		return a, false, fmt.Errorf("%s is in spec.reach of pools %s and %s: only one of them may name it", host, a.Pool,
			b.Pool)
	}
	return a, false, fmt.Errorf("%s is of node %s of pool %s and of node %s of pool %s: want the name of the node, as "+
		"kube-apiserver asks with --kubelet-preferred-address-types=Hostname,InternalIP", host, a.Node, a.Pool, b.Node,
		b.Pool)
}
