package eviction

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/sim/routes"
)

const (
	callEvery    = 100 * time.Millisecond
	callPatience = time.Second
)

// caller is a client on one node that calls a Service as kube-proxy lets it: what the EndpointSlices say that its node
// sees. It calls endpoints in its own pool only, since others are beyond a link that may be cut.
type caller struct {
	node    string
	pool    []string
	slices  discoverylisters.EndpointSliceLister
	next    int
	client  http.Client
	failure func(node string, err error) // told of each call that failed

	tally
}

// tally counts calls.
type tally struct {
	mu            sync.Mutex
	calls, failed int
}

func (t *tally) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	if err != nil {
		t.failed++
	}
}

func (t *tally) count() (calls, failed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls, t.failed
}

// newCaller follows the slices of the Service through the node's door to the API until ctx ends; wait returns when that
// has ended.
func newCaller(ctx context.Context, config *rest.Config, node string, pool []string, failure func(string, error)) (
	c *caller, wait func(), err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("client of the caller on %s: %w", node, err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(corev1.NamespaceDefault),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = discoveryv1.LabelServiceName + "=" + appName
		}))
	c = &caller{
		node: node, pool: pool, slices: factory.Discovery().V1().EndpointSlices().Lister(), failure: failure,
		client: routes.NewClient(callPatience),
	}
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, factory.Shutdown, fmt.Errorf("the caller on %s has no %v: %w", node, kind, ctx.Err())
		}
	}
	return c, factory.Shutdown, nil
}

// run calls until ctx ends.
func (c *caller) run(ctx context.Context) {
	t := time.NewTicker(callEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := c.call(ctx)
		if ctx.Err() != nil {
			return
		}
		c.add(err)
		if err != nil {
			c.failure(c.node, err)
		}
	}
}

func (c *caller) call(ctx context.Context) error {
	ips, err := c.endpoints()
	if err != nil {
		return err
	}
	c.next++
	_, err = routes.Ask(ctx, &c.client, ips[c.next%len(ips)])
	return err
}

// endpoints are those that kube-proxy would send a connection to: those that are ready, else those that still serve.
func (c *caller) endpoints() ([]string, error) {
	all, err := c.slices.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var ready, serving []string
	for _, s := range all {
		for _, e := range s.Endpoints {
			if !slices.Contains(c.pool, ptr.Deref(e.NodeName, "")) {
				continue
			}
			switch {
			case ptr.Deref(e.Conditions.Ready, true):
				ready = append(ready, e.Addresses...)
			case ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false):
				serving = append(serving, e.Addresses...)
			}
		}
	}
	if len(ready) == 0 {
		ready = serving
	}
	if len(ready) == 0 {
		return nil, errors.New("the Service has no endpoint in this pool")
	}
	slices.Sort(ready)
	return ready, nil
}
