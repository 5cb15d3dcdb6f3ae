package eviction

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-edge/weir/sim/runtime"
)

// component is what runs on a stock node beside the kubelet, and reads the API by informers of client-go. What each
// watches is what the audit log of a kind cluster of Kubernetes 1.37 has of it.
type component struct {
	identity string // as runtime.Site.Token has it
	first    bool   // it runs on the first node alone
	watches  func(node string) []watched
}

// watched is one watch of a component.
type watched struct {
	of              func(informers.SharedInformerFactory) cache.SharedIndexInformer
	labels, objects string // selectors of labels and fields
}

func services(f informers.SharedInformerFactory) cache.SharedIndexInformer {
	return f.Core().V1().Services().Informer()
}

func endpointSlices(f informers.SharedInformerFactory) cache.SharedIndexInformer {
	return f.Discovery().V1().EndpointSlices().Informer()
}

func nodes(f informers.SharedInformerFactory) cache.SharedIndexInformer {
	return f.Core().V1().Nodes().Informer()
}

const headed = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name"

var components = []component{
	{identity: "kube-proxy", watches: func(node string) []watched {
		return []watched{
			{of: services, labels: headed, objects: "spec.clusterIP!=None"}, {of: endpointSlices, labels: headed},
			{of: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
				return f.Networking().V1().ServiceCIDRs().Informer()
			}},
			{of: nodes, objects: fields.OneTermEqualSelector("metadata.name", node).String()},
		}
	}},
	{identity: "coredns", first: true, watches: func(string) []watched {
		return []watched{{of: services}, {of: endpointSlices}, {of: func(
			f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Namespaces().Informer()
		}}}
	}},
	// The network plugin: flannel and kindnet watch all Nodes.
	{identity: "flannel", watches: func(string) []watched { return []watched{{of: nodes}} }},
}

// startComponents runs what is on each node of the pool beside its kubelet, until ctx ends.
func (c *column) startComponents(ctx context.Context) error {
	if !c.about.Components {
		return nil
	}
	for i, node := range c.history.Nodes {
		if err := c.startComponentsOf(ctx, node, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// startComponentsOf runs what is on one node.
func (c *column) startComponentsOf(ctx context.Context, node string, first bool) error {
	for _, x := range components {
		if x.first && !first {
			continue
		}
		if err := c.startComponent(ctx, node, x); err != nil {
			return fmt.Errorf("%s on %s: %w", x.identity, node, err)
		}
	}
	return nil
}

// startComponent runs one of them, over one connection.
func (c *column) startComponent(ctx context.Context, node string, x component) error {
	door, err := c.Site.Endpoint(node, runtime.ClassNode)
	if err != nil {
		return err
	}
	token, err := c.Site.Token(ctx, x.identity)
	if err != nil {
		return err
	}
	config := door.RESTConfig(token)
	config.UserAgent = x.identity + "/v1.37"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, w := range x.watches(node) {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.LabelSelector, o.FieldSelector = w.labels, w.objects
			}))
		informer := w.of(factory)
		factory.Start(ctx.Done())
		c.stop = append(c.stop, factory.Shutdown)
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return fmt.Errorf("a watch did not begin: %w", context.Cause(ctx))
		}
	}
	return nil
}
