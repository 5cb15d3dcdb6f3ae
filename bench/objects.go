package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const namespace = "bench"

// slice is an EndpointSlice of 100 endpoints as the real controller writes it, about 13 kB of protobuf.
func slice(i, round int) *discoveryv1.EndpointSlice {
	port, name, proto := int32(8080), "http", corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("service-%04d-abcde", i),
			Labels: map[string]string{
				discoveryv1.LabelServiceName: fmt.Sprintf("service-%04d", i),
				discoveryv1.LabelManagedBy:   "endpointslice-controller.k8s.io",
			},
			Annotations: map[string]string{"bench.weir/round": fmt.Sprint(round)},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &proto}},
	}
	for k := range 100 {
		node, zone, ready := fmt.Sprintf("edge-node-%02d", k%20), "zone-a", k != round%100
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", i/250, i%250, k)},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
			NodeName:   &node, Zone: &zone,
			TargetRef: &corev1.ObjectReference{
				Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("service-%04d-7d9f8b6c5-%05d", i, k),
				UID: types.UID(fmt.Sprintf("%08x-1ff0-473c-9576-%012x", i, k)),
			},
		})
	}
	return s
}

// fill creates slices from, from+1, … to-1.
func fill(ctx context.Context, c kubernetes.Interface, from, to int, progress func(string)) error {
	if from == 0 {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := c.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := from; i < to; i++ {
		if (i-from)%500 == 0 {
			progress(fmt.Sprintf("creating EndpointSlices of 100 endpoints: %d of %d", i, to))
		}
		g.Go(func() error {
			_, err := c.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice(i, 0), metav1.CreateOptions{})
			return err
		})
	}
	return g.Wait()
}

// changer updates slices one after the other, each at its time, or as soon after it as the cloud takes it.
func changer(c kubernetes.Interface, objects int) func(ctx context.Context, n int, every time.Duration) error {
	next := 0
	return func(ctx context.Context, n int, every time.Duration) error {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for range n {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			next++
			if _, err := c.DiscoveryV1().EndpointSlices(namespace).Update(ctx, slice(next%objects, next),
				metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
}
