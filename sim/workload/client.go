package workload

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// manager is the user agent, hence the name in the managedFields that each object carries, as in a real cluster.
const manager = "kube-controller-manager"

// NewClient returns a client for Fill and Churn: protobuf, no limit of requests, known as kube-controller-manager.
func NewClient(admin *rest.Config) (kubernetes.Interface, error) {
	c := rest.CopyConfig(admin)
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.QPS = -1
	c.UserAgent = manager
	c.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated, and each write of one says so
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("client of the workload: %w", err)
	}
	return client, nil
}
