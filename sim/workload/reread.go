package workload

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Reread takes up what a cloud holds that was restored from a backup: objects are at other versions, or were not
// written yet. What the cloud has no more is created by its next change, and an extra slice that comes back stays.
func (w *Workload) Reread(ctx context.Context, client kubernetes.Interface) error {
	slices, err := client.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read again: %w", err)
	}
	endpoints, err := client.CoreV1().Endpoints("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read again: %w", err)
	}
	sliceVersions, endpointsVersions := map[string]string{}, map[string]string{}
	for i := range slices.Items {
		sliceVersions[slices.Items[i].Namespace+"/"+slices.Items[i].Name] = slices.Items[i].ResourceVersion
	}
	for i := range endpoints.Items {
		endpointsVersions[endpoints.Items[i].Namespace+"/"+endpoints.Items[i].Name] = endpoints.Items[i].ResourceVersion
	}
	for _, s := range w.services {
		s.endpointsVersion = endpointsVersions[s.namespace+"/"+s.name]
		for _, sl := range s.slices {
			sl.version = sliceVersions[s.namespace+"/"+sl.name]
		}
	}
	if x := &w.extra; x.slice != nil {
		x.slice.version = sliceVersions[x.service.namespace+"/"+x.slice.name]
		if x.slice.version == "" { // the next cycle begins
			x.steps += len(extraCycle) - x.steps%len(extraCycle)
			x.service, x.slice = nil, nil
		}
	}
	return nil
}
