package client

import (
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resources that streams can be of.
const (
	EndpointSlices = "endpointslices"
	Endpoints      = "endpoints"
	Widgets        = "widgets" // a custom resource, of which a scenario may have some
)

// ProxySelector is the label selector of kube-proxy's informer of EndpointSlices, as cmd/kube-proxy/app/server.go of
// Kubernetes 1.37 makes it.
const ProxySelector = "!service.kubernetes.io/headless"

// Spec is what a stream watches, and how.
type Spec struct {
	Client      string // "kube-proxy", "coredns", "json", "widgets", "reference", "truth"
	Resource    string // EndpointSlices, Endpoints or Widgets, of all namespaces
	Selector    string // of labels; "" is everything
	JSON        bool   // as a client without client-go's decoders reads it; else protobuf
	NoWatchList bool   // list, then watch; else one streaming list, as client-go does by default since 0.35
	Labels      bool   // record labels, for the truth
}

// Specs are the streams of one kind of client; none if the kind has no streams. All of them begin with a streaming
// list, the one way of watching that kube-apiserver 1.37 compresses: so the way without Weir is at its best. An older
// client costs several times as much (NoWatchList).
func Specs(kind string) []Spec {
	switch kind {
	case "kube-proxy":
		return []Spec{{Client: kind, Resource: EndpointSlices, Selector: ProxySelector}}
	case "coredns":
		return []Spec{{Client: kind, Resource: EndpointSlices}, {Client: kind, Resource: Endpoints}}
	case "json":
		return []Spec{{Client: kind, Resource: EndpointSlices, JSON: true}}
	case Widgets:
		return []Spec{{Client: kind, Resource: Widgets, JSON: true}}
	case "reference", "truth":
		labels := kind == "truth"
		return []Spec{
			{Client: kind, Resource: EndpointSlices, Labels: labels}, {Client: kind, Resource: Endpoints, Labels: labels},
		}
	}
	return nil
}

// WatchPath is the path of a watch of what the stream watches, from now on.
func (s Spec) WatchPath() string {
	gv, path := s.group()
	q := url.Values{"watch": {"1"}}
	if s.Selector != "" {
		q.Set("labelSelector", s.Selector)
	}
	if gv.Group != "" {
		path += "/" + gv.Group
	}
	return path + "/" + gv.Version + "/" + s.Resource + "?" + q.Encode()
}

// Validate tells what is wrong with s.
func (s Spec) Validate() error {
	var errs []error
	if s.object() == nil {
		errs = append(errs, fmt.Errorf("client %s: resource %q: want %s, %s or %s", s.Client, s.Resource, EndpointSlices,
			Endpoints, Widgets))
	}
	if _, err := labels.Parse(s.Selector); err != nil {
		errs = append(errs, fmt.Errorf("client %s: selector %q: %w", s.Client, s.Selector, err))
	}
	return errors.Join(errs...)
}

// object is an empty object of the resource, and list an empty list.
func (s Spec) object() runtime.Object {
	switch s.Resource {
	case EndpointSlices:
		return &discoveryv1.EndpointSlice{}
	case Endpoints:
		return &corev1.Endpoints{}
	case Widgets:
		return &Widget{}
	}
	return nil
}

func (s Spec) list() runtime.Object {
	switch s.Resource {
	case EndpointSlices:
		return &discoveryv1.EndpointSliceList{}
	case Widgets:
		return &WidgetList{}
	}
	return &corev1.EndpointsList{}
}

// group is the API group of the resource, and where it is.
func (s Spec) group() (gv schema.GroupVersion, path string) {
	switch s.Resource {
	case EndpointSlices:
		return discoveryv1.SchemeGroupVersion, "/apis"
	case Widgets:
		return WidgetVersion, "/apis"
	}
	return corev1.SchemeGroupVersion, "/api"
}
