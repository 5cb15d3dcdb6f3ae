package routes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// The kinds of watchers.
const (
	Informs = "informer"
	Lists   = "lister" // it never watches
)

const (
	listEvery    = time.Second
	listPatience = 5 * time.Second
)

// Watcher is a client that is shown all EndpointSlices of a cluster, as kube-proxy and CoreDNS are, and notes them. It
// knows Services, slices and pods by their names alone.
type Watcher struct {
	client   kubernetes.Interface
	services map[string]string // of the slices that it has, by their names

	mu     sync.Mutex
	seen   Client
	slices map[string]map[string][]Endpoint // what each shows now
	at     map[string]string                // the version of each
}

// NewWatcher returns one for a node, of a kind.
func NewWatcher(client kubernetes.Interface, node, kind string) *Watcher {
	return &Watcher{
		client: client, seen: Client{Node: node, Kind: kind},
		services: map[string]string{}, slices: map[string]map[string][]Endpoint{}, at: map[string]string{},
	}
}

// Run lets it be shown slices until ctx ends. synced is called once it has all.
func (w *Watcher) Run(ctx context.Context, synced func()) error {
	ctx = klog.NewContext(ctx, klog.Logger{}) // what goes wrong is noise in the log of the testbed
	var err error
	if w.seen.Kind == Lists {
		w.list(ctx, synced)
	} else {
		err = w.inform(ctx, synced)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.To = time.Now()
	return err
}

func (w *Watcher) inform(ctx context.Context, synced func()) error {
	factory := informers.NewSharedInformerFactory(w.client, 0)
	handle, err := factory.Discovery().V1().EndpointSlices().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.show(o, false) },
		UpdateFunc: func(_, o any) { w.show(o, false) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			w.show(o, true)
		},
	})
	if err != nil {
		return fmt.Errorf("watch EndpointSlices: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		w.begin(synced)
	}
	<-ctx.Done()
	return nil
}

// list lists until ctx ends. A list that fails changes nothing: whoever lists goes on with what it has.
func (w *Watcher) list(ctx context.Context, synced func()) {
	t := time.NewTicker(listEvery)
	defer t.Stop()
	for {
		timeout, cancel := context.WithTimeout(ctx, listPatience)
		all, err := w.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(timeout, metav1.ListOptions{})
		cancel()
		if err == nil {
			w.replace(all.Items)
			w.begin(synced)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (w *Watcher) replace(all []discoveryv1.EndpointSlice) {
	gone := map[string]bool{}
	w.mu.Lock()
	for name := range w.slices {
		gone[name] = true
	}
	w.mu.Unlock()
	for i := range all {
		delete(gone, all[i].Name)
		w.show(&all[i], false)
	}
	for name := range gone {
		w.show(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}, true)
	}
}

func (w *Watcher) begin(synced func()) {
	w.mu.Lock()
	first := w.seen.From.IsZero()
	if first {
		w.seen.From = time.Now()
	}
	w.mu.Unlock()
	if first {
		synced()
	}
}

// show notes a slice, if it shows anything else than before.
func (w *Watcher) show(o any, gone bool) {
	s, ok := o.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	var pods map[string][]Endpoint
	if !gone {
		pods = endpoints(s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	version := s.ResourceVersion
	if had, there := w.slices[s.Name]; there && !gone && version == w.at[s.Name] && reflect.DeepEqual(had, pods) {
		return
	}
	if gone {
		version = ""
	}
	w.seen.Shown = append(w.seen.Shown, Shown{At: time.Now(), Slice: s.Name, Version: version, Pods: pods})
	w.at[s.Name], w.slices[s.Name], w.services[s.Name] = version, pods, s.Labels[discoveryv1.LabelServiceName]
	if gone {
		delete(w.at, s.Name)
		delete(w.slices, s.Name)
		delete(w.services, s.Name)
	}
}

// endpoints are where a slice leads to, by pod.
func endpoints(s *discoveryv1.EndpointSlice) map[string][]Endpoint {
	pods := map[string][]Endpoint{}
	for _, e := range s.Endpoints {
		if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
			continue
		}
		for _, a := range e.Addresses {
			pods[e.TargetRef.Name] = append(pods[e.TargetRef.Name], Endpoint{a, ptr.Deref(e.Conditions.Ready, true)})
		}
	}
	return pods
}

// Seen is what it was shown so far; ok is false if it never had all slices.
func (w *Watcher) Seen() (c Client, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c = w.seen
	c.Shown = slices.Clone(c.Shown)
	return c, !c.From.IsZero()
}

var errNoEndpoint = errors.New("the Service has no endpoint that is ready")

// Ready are the addresses that a Service leads to now, in order.
func (w *Watcher) Ready(service string) (addresses []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		if w.services[name] != service {
			continue
		}
		for _, all := range w.slices[name] {
			for _, e := range all {
				if e.Ready {
					addresses = append(addresses, e.Address)
				}
			}
		}
	}
	if len(addresses) == 0 {
		return nil, errNoEndpoint
	}
	slices.Sort(addresses)
	return addresses, nil
}

// Shows is how many pods it shows at the one address that they have, of these lives.
func (w *Watcher) Shows(lives map[string]Life) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pods := range w.slices {
		for pod, all := range pods {
			if len(all) == 1 && all[0].Ready && all[0].Address == lives[pod].Address {
				n++
			}
		}
	}
	return n
}
