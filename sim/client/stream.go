package client

import (
	"context"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Resources that streams can be of.
const (
	EndpointSlices = "endpointslices"
	Endpoints      = "endpoints"
)

// ProxySelector is the label selector of kube-proxy's informers (cmd/kube-proxy/app of Kubernetes 1.37).
const ProxySelector = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name"

// Spec is what a stream watches, and how.
type Spec struct {
	Client   string // "kube-proxy", "coredns", "json", "reference", "truth"
	Resource string
	Selector string // of labels; "" is everything
	JSON     bool   // else protobuf
	Labels   bool   // record labels
}

// Specs are the streams of one kind of client.
func Specs(kind string) []Spec {
	switch kind {
	case "kube-proxy":
		return []Spec{{Client: kind, Resource: EndpointSlices, Selector: ProxySelector}}
	case "coredns":
		return []Spec{{Client: kind, Resource: EndpointSlices}, {Client: kind, Resource: Endpoints}}
	case "json":
		return []Spec{{Client: kind, Resource: EndpointSlices, JSON: true}}
	case "reference", "truth":
		labels := kind == "truth"
		return []Spec{{Client: kind, Resource: EndpointSlices, Labels: labels}, {Client: kind, Resource: Endpoints, Labels: labels}}
	}
	return nil
}

// Stream is one reflector that runs.
type Stream struct {
	Spec      Spec
	Recording *Recording

	done sync.WaitGroup
}

// Start opens a stream with credentials and address of config, until ctx ends.
func Start(ctx context.Context, config *rest.Config, spec Spec) (*Stream, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = spec.Client
	// A dialer of its own keeps client-go from sharing the connection with other clients of the same credentials.
	config.Dial = (&net.Dialer{}).DialContext
	if !spec.JSON {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client %s: %w", spec.Client, err)
	}
	s := &Stream{Spec: spec, Recording: &Recording{labels: spec.Labels}}
	lw, kind, err := s.listWatch(api)
	if err != nil {
		return nil, err
	}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, api), kind, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Name: spec.Client})
	s.done.Go(func() { r.RunWithContext(ctx) })
	return s, nil
}

// Wait waits for the end of a stream whose context has ended.
func (s *Stream) Wait() { s.done.Wait() }

func (s *Stream) listWatch(api kubernetes.Interface) (*cache.ListWatch, runtime.Object, error) {
	slices, endpoints := api.DiscoveryV1().EndpointSlices(""), api.CoreV1().Endpoints("")
	switch s.Spec.Resource {
	case EndpointSlices:
		return s.record(
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return slices.List(ctx, o) },
			slices.Watch,
		), &discoveryv1.EndpointSlice{}, nil
	case Endpoints:
		return s.record(
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return endpoints.List(ctx, o) },
			endpoints.Watch,
		), &corev1.Endpoints{}, nil
	}
	return nil, nil, fmt.Errorf("client %s: resource %q is none of %s, %s", s.Spec.Client, s.Spec.Resource, EndpointSlices, Endpoints)
}

// record wraps list and watch so that all they bring is taken down.
func (s *Stream) record(
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	open func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.ListWatch {
	rec := s.Recording
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = s.Spec.Selector
			l, err := list(ctx, o)
			if err != nil {
				rec.failed(err)
				return nil, err
			}
			rec.list(l)
			return l, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = s.Spec.Selector
			w, err := open(ctx, o)
			if err != nil {
				rec.failed(err)
				return nil, err
			}
			op := Op{What: OpOpen, Initial: o.SendInitialEvents != nil && *o.SendInitialEvents}
			op.Version = parseVersion(o.ResourceVersion)
			rec.add(op)
			return watch.Filter(w, func(ev watch.Event) (watch.Event, bool) {
				rec.event(ev)
				return ev, true
			}), nil
		},
	}
}
