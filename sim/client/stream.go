package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Stream is one informer that runs.
type Stream struct {
	Spec      Spec
	Recording *Recording

	informer cache.SharedIndexInformer
	done     sync.WaitGroup
}

// Start opens one stream, with a connection of its own, until ctx ends.
func Start(ctx context.Context, config *rest.Config, spec Spec) (*Stream, error) {
	streams, err := Open(ctx, config, spec)
	if err != nil {
		return nil, err
	}
	return streams[0], nil
}

// Open starts the streams of one process, which share a connection, with address and credentials of config, until ctx
// ends.
func Open(ctx context.Context, config *rest.Config, specs ...Spec) ([]*Stream, error) {
	if len(specs) == 0 {
		return nil, errors.New("open streams: there are none")
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = specs[0].Client
	// A dialer of its own keeps client-go from sharing the connection with other clients of the same credentials.
	config.Dial = (&net.Dialer{}).DialContext
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client %s: %w", config.UserAgent, err)
	}
	streams := make([]*Stream, 0, len(specs))
	for _, spec := range specs {
		s, err := newStream(config, connection, spec)
		if err != nil {
			return nil, err
		}
		streams = append(streams, s)
	}
	// Whatever goes wrong is in the recording; in the log of the testbed it would be noise.
	ctx = klog.NewContext(ctx, klog.Logger{})
	var all sync.WaitGroup
	for i, s := range streams {
		all.Add(1)
		s.done.Go(func() {
			s.informer.RunWithContext(ctx)
			if all.Done(); i == 0 {
				all.Wait()
				utilnet.CloseIdleConnectionsFor(connection.Transport)
			}
		})
	}
	return streams, nil
}

func newStream(config *rest.Config, connection *http.Client, spec Spec) (*Stream, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	s := &Stream{Spec: spec, Recording: &Recording{labels: spec.Labels}}
	a, err := newAPI(config, connection, spec, s.Recording)
	if err != nil {
		return nil, err
	}
	s.informer = cache.NewSharedIndexInformer(listWatch(a, spec, s.Recording), spec.object(), 0, cache.Indexers{})
	if err := s.informer.SetTransform(identity); err != nil {
		return nil, fmt.Errorf("client %s: %w", spec.Client, err)
	}
	return s, nil
}

// identity keeps of an object what tells which one it is. Real clients keep little more, and a testbed has hundreds.
func identity(obj any) (any, error) {
	m, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
	}}, nil
}

// Wait waits for the end of a stream whose context has ended.
func (s *Stream) Wait() { s.done.Wait() }

// Stored is what the informer's store holds, for the users of the client: items without a hash.
func (s *Stream) Stored() []Item {
	var items []Item
	for _, obj := range s.informer.GetStore().List() {
		if m, ok := obj.(metav1.Object); ok {
			version, _ := strconv.ParseUint(m.GetResourceVersion(), 10, 64)
			items = append(items, Item{Key: m.GetNamespace() + "/" + m.GetName(), UID: string(m.GetUID()), Version: version})
		}
	}
	return items
}
