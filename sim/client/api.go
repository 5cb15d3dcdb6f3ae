package client

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// api lists and watches one resource.
type api interface {
	list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// newAPI returns the api of a stream, over the connection of c.
func newAPI(config *rest.Config, c *http.Client, spec Spec, rec *Recording) (api, error) {
	config = rest.CopyConfig(config)
	gv, path := spec.group()
	config.GroupVersion, config.APIPath = &gv, path
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if !spec.JSON {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	r, err := rest.RESTClientForConfigAndClient(config, c)
	if err != nil {
		return nil, fmt.Errorf("client %s: %w", spec.Client, err)
	}
	if spec.JSON {
		return newJSON(r, spec, rec), nil
	}
	return typed{r, spec}, nil
}

// typed does what the generated clients of client-go do.
type typed struct {
	rest *rest.RESTClient
	spec Spec
}

func (t typed) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := t.spec.list()
	err := request(t.rest, t.spec, o).Do(ctx).Into(list)
	return list, err
}

func (t typed) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return request(t.rest, t.spec, o).Watch(ctx)
}

func request(r *rest.RESTClient, spec Spec, o metav1.ListOptions) *rest.Request {
	return r.Get().Resource(spec.Resource).SpecificallyVersionedParams(&o, scheme.ParameterCodec,
		schema.GroupVersion{Version: "v1"})
}

// query is how the options are written in a request.
func query(o metav1.ListOptions) string {
	values, err := scheme.ParameterCodec.EncodeParameters(&o, schema.GroupVersion{Version: "v1"})
	if err != nil {
		return err.Error()
	}
	return values.Encode()
}

// listWatch is what an informer needs of an api, with all that it brings taken down.
func listWatch(a api, spec Spec, rec *Recording) cache.ListerWatcher {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = spec.Selector
			l, err := a.list(ctx, o)
			if err != nil {
				if ctx.Err() == nil {
					rec.failed(err)
				}
				return nil, err
			}
			rec.list(l, o)
			return l, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = spec.Selector
			w, err := a.watch(ctx, o)
			if err != nil {
				if ctx.Err() == nil {
					rec.failed(err)
				}
				return nil, err
			}
			rec.opened(o)
			return newTap(w, rec), nil
		},
	}
	return cache.ToListWatcherWithWatchListSemantics(lw, streaming(!spec.NoWatchList))
}

// streaming is what client-go asks whether it may use streaming lists.
type streaming bool

// IsWatchListSemanticsUnSupported is spelled as client-go wants it.
func (s streaming) IsWatchListSemanticsUnSupported() bool { return !bool(s) }
