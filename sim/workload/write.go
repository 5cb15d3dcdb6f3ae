package workload

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Write is one write to the cloud.
type Write struct {
	Verb            string // create, update, delete
	Resource        string // endpointslices, endpoints
	Namespace, Name string
	ResourceVersion string // that the write made; empty for a delete, whose answer does not tell
}

// writeSlice creates a slice, or updates the one that was written before: with its version, so that a second writer
// would be noticed.
func (s *service) writeSlice(ctx context.Context, client kubernetes.Interface, sl *slice) (Write, error) {
	write := Write{Verb: "create", Resource: "endpointslices", Namespace: s.namespace, Name: sl.name}
	api, object := client.DiscoveryV1().EndpointSlices(s.namespace), s.endpointSlice(sl)
	var err error
	if sl.version == "" {
		object, err = api.Create(ctx, object, metav1.CreateOptions{})
	} else {
		write.Verb = "update"
		object, err = api.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return write, write.wrap(err)
	}
	sl.version = object.ResourceVersion
	write.ResourceVersion = sl.version
	return write, nil
}

func (s *service) deleteSlice(ctx context.Context, client kubernetes.Interface, sl *slice) (Write, error) {
	write := Write{Verb: "delete", Resource: "endpointslices", Namespace: s.namespace, Name: sl.name}
	err := client.DiscoveryV1().EndpointSlices(s.namespace).Delete(ctx, sl.name, metav1.DeleteOptions{})
	if err != nil {
		return write, write.wrap(err)
	}
	return write, nil
}

// writeEndpoints creates or updates the Endpoints.
func (s *service) writeEndpoints(ctx context.Context, client kubernetes.Interface) (Write, error) {
	write := Write{Verb: "create", Resource: "endpoints", Namespace: s.namespace, Name: s.name}
	api, object := client.CoreV1().Endpoints(s.namespace), s.endpoints()
	var err error
	if s.endpointsVersion == "" {
		object, err = api.Create(ctx, object, metav1.CreateOptions{})
	} else {
		write.Verb = "update"
		object, err = api.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return write, write.wrap(err)
	}
	s.endpointsVersion = object.ResourceVersion
	write.ResourceVersion = s.endpointsVersion
	return write, nil
}

func (w Write) wrap(err error) error {
	return fmt.Errorf("%s %s %s/%s: %w", w.Verb, w.Resource, w.Namespace, w.Name, err)
}
