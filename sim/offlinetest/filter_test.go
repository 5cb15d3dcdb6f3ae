package offlinetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
)

// seen is what the handlers of a component's informers were told, so not what its stores hold.
type seen struct {
	informers []cache.SharedIndexInformer

	mu    sync.Mutex
	names map[string]string // by kind and name: address or nodes of endpoints
}

// proxy starts as much of a kube-proxy as reads.
func (b *bed) proxy(component string) *seen {
	b.t.Helper()
	config := b.kubelet(component+"/v1.37", runtime.ContentTypeProtobuf)
	client, err := kubernetes.NewForConfig(config)
	check(b.t, err)
	s := &seen{names: map[string]string{}}
	tell := func(o any, gone bool) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		key, value := "", ""
		switch o := o.(type) {
		case *corev1.Service:
			key, value = "service "+o.Name, o.Spec.ClusterIP
		case *discoveryv1.EndpointSlice:
			var nodes []string
			for _, e := range o.Endpoints {
				nodes = append(nodes, *e.NodeName)
			}
			slices.Sort(nodes)
			key, value = "slice "+o.Name, strings.Join(nodes, " ")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.names[key] = value; gone {
			delete(s.names, key)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for resource, as := range map[string]runtime.Object{
		"services": &corev1.Service{}, "endpointslices": &discoveryv1.EndpointSlice{},
	} {
		rest := client.CoreV1().RESTClient()
		if resource == "endpointslices" {
			rest = client.DiscoveryV1().RESTClient()
		}
		lw := cache.NewListWatchFromClient(rest, resource, "", fields.Everything())
		i := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(lw, client), as, 0, cache.Indexers{})
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { tell(o, false) }, UpdateFunc: func(_, o any) { tell(o, false) },
			DeleteFunc: func(o any) { tell(o, true) },
		})
		check(b.t, err)
		s.informers = append(s.informers, i)
		wg.Go(func() { i.RunWithContext(ctx) })
	}
	b.t.Cleanup(func() { cancel(); wg.Wait() })
	return s
}

func (s *seen) is(want map[string]string) (bool, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range want {
		if got, ok := s.names[key]; !ok && value != "none" || ok && got != value {
			return false, fmt.Sprintf("%s is %q (%v), want %q", key, got, ok, value)
		}
	}
	return true, ""
}

// sees waits until a component's handlers have been told that.
func (b *bed) sees(when string, s *seen, want map[string]string) {
	b.t.Helper()
	why := ""
	defer func() {
		if b.t.Failed() {
			b.t.Logf("%s: %s", when, why)
		}
	}()
	eventually(b.t, when, func() (ok bool) { ok, why = s.is(want); return ok })
}

// TestFilters: handlers of client-go's informers are told what the filters make of the cloud's state: at first, when a
// Service's topology or a node's pool changes, which changes no slice, and after the hub was killed without the cloud.
func TestFilters(t *testing.T) {
	for name, watchList := range map[string]bool{"streaming lists": true, "list and watch": false} {
		t.Run(name, func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, watchList)
			testFilters(t)
		})
	}
}

func testFilters(t *testing.T) {
	b := newBed(t, parts.Flags{
		"filters":                []string{"masterservice=kubelet,kube-proxy", "discardcloudservice", "servicetopology"},
		"master-service-address": "169.254.2.1:10268",
	})
	ctx, core := t.Context(), b.admin.CoreV1()
	check(t, b.cloud.CreateNodes(ctx, cloud.Node{Name: "edge-2", Pool: "pool-a", Address: "10.0.0.2"},
		cloud.Node{Name: "cloud-1", Pool: "pool-b", Address: "10.0.0.3"}))
	for name, annotation := range map[string]string{
		"far": "", "pool": contract.TopologyKeys + "=" + contract.PoolTopology, "lb": contract.DiscardService + "=true",
	} {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
				Type: "LoadBalancer", Ports: []corev1.ServicePort{{Port: 80}},
			},
		}
		if key, value, ok := strings.Cut(annotation, "="); ok {
			s.Annotations = map[string]string{key: value}
		}
		_, err := core.Services("default").Create(ctx, s, metav1.CreateOptions{})
		check(t, err)
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: "IPv4",
		}
		for i, n := range []string{edge, "edge-2", "cloud-1"} {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.1.0.%d", i+1)}, NodeName: &n,
			})
		}
		_, err = b.admin.DiscoveryV1().EndpointSlices("default").Create(ctx, slice, metav1.CreateOptions{})
		check(t, err)
	}
	b.nodeReads()
	b.restart() // so that it lists the pool again, which it does each 5 minutes
	proxy, other := b.proxy("kube-proxy"), b.proxy("other")
	const all, pool = "cloud-1 edge-1 edge-2", "edge-1 edge-2"
	unfiltered := map[string]string{"slice far": all, "slice pool": all, "slice lb": all}
	b.sees("at first", proxy, map[string]string{
		"service kubernetes": "169.254.2.1", "service lb": "none", "slice far": all, "slice pool": pool, "slice lb": all,
	})
	b.sees("without filters", other, unfiltered)
	eventually(t, "the Service without filters", func() bool {
		other.mu.Lock()
		defer other.mu.Unlock()
		_, lb := other.names["service lb"]
		return lb && other.names["service kubernetes"] != "" && other.names["service kubernetes"] != "169.254.2.1"
	})

	change := func(name string, annotations map[string]string) {
		s, err := core.Services("default").Get(ctx, name, metav1.GetOptions{})
		check(t, err)
		s.Annotations = annotations
		_, err = core.Services("default").Update(ctx, s, metav1.UpdateOptions{})
		check(t, err)
	}
	change("far", map[string]string{contract.TopologyKeys: contract.HostnameTopology})
	change("lb", nil)
	b.sees("Services changed", proxy, map[string]string{"slice far": edge, "slice pool": pool, "slice lb": all})
	eventually(t, "the Service that is no more for the cloud alone", func() bool {
		proxy.mu.Lock()
		defer proxy.mu.Unlock()
		return proxy.names["service lb"] != ""
	})
	change("lb", map[string]string{contract.DiscardService: "true"})
	b.sees("and is again", proxy, map[string]string{"service lb": "none"})

	n, err := core.Nodes().Get(ctx, "edge-2", metav1.GetOptions{})
	check(t, err)
	n.Labels[contract.NodePoolLabel] = "pool-b"
	_, err = core.Nodes().Update(ctx, n, metav1.UpdateOptions{})
	check(t, err)
	b.restart()
	b.sees("a node left the pool", proxy, map[string]string{"slice far": edge, "slice pool": edge, "slice lb": all})
	b.sees("the other still sees all", other, unfiltered)

	b.written()
	b.cut()
	b.restart()
	b.sees("without the cloud", b.proxy("kube-proxy"), map[string]string{
		"service kubernetes": "169.254.2.1", "service lb": "none", "slice far": edge, "slice pool": edge, "slice lb": all,
	})
}
