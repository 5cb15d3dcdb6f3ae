package workload_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/workload"
)

// TestRealCloud: the real kube-apiserver takes every write, keeps what was written, and shows the transitions of
// kube-proxy's selector that the extra slices are for.
func TestRealCloud(t *testing.T) {
	real, _ := cloudtest.Start(t)
	client, err := workload.NewClient(real.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	const services, size, changes = 10, 100, 80 // 80 changes: one cycle of extra slices
	c := config(1)
	c.Services, c.Endpoints = services, size
	w := workload.New(c)
	if err := w.Fill(t.Context(), client, nil); err != nil {
		t.Fatal(err)
	}
	slicesAPI := client.DiscoveryV1().EndpointSlices("")
	mine := metav1.ListOptions{LabelSelector: discoveryv1.LabelManagedBy + "=endpointslice-controller.k8s.io"}
	full, err := slicesAPI.List(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	if len(full.Items) != services {
		t.Fatalf("%d slices, want %d", len(full.Items), services)
	}
	for i := range full.Items {
		checkStored(t, &full.Items[i], size)
	}

	watcher, err := slicesAPI.Watch(t.Context(), metav1.ListOptions{
		LabelSelector: mine.LabelSelector + ",!service.kubernetes.io/headless", ResourceVersion: full.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	var want []string
	err = w.Churn(t.Context(), client, changes, 0, nil, func(c workload.Change) { want = append(want, wantEvents(c)...) })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	for len(got) < len(want) {
		select {
		case e := <-watcher.ResultChan():
			if sl, ok := e.Object.(*discoveryv1.EndpointSlice); ok {
				got = append(got, fmt.Sprint(e.Type, " ", sl.Name))
			}
		case <-timeout.C:
			t.Fatalf("%d events of %d in 30 s", len(got), len(want))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("kube-proxy's selector saw\n%v\nwant\n%v", got, want)
	}
}

// wantEvents are what a change is to a watch with kube-proxy's selector. That an extra slice was created outside the
// selector, or deleted there, does not show; the cycle knows where that is.
func wantEvents(c workload.Change) []string {
	event := func(t watch.EventType) []string { return []string{fmt.Sprint(t, " ", c.Writes[0].Name)} }
	switch extra := c.Number / 8; {
	case c.Kind == workload.Created && extra != 5, c.Kind == workload.Shown:
		return event(watch.Added)
	case c.Kind == workload.Hidden, c.Kind == workload.Deleted && extra != 10:
		return event(watch.Deleted)
	case c.Kind == workload.Flipped, c.Kind == workload.Replaced:
		return event(watch.Modified)
	}
	return nil
}

func checkStored(t *testing.T, sl *discoveryv1.EndpointSlice, size int) {
	t.Helper()
	if len(sl.Endpoints) != size {
		t.Errorf("%s has %d endpoints, want %d", sl.Name, len(sl.Endpoints), size)
	}
	if len(sl.ManagedFields) != 1 || sl.ManagedFields[0].Manager != "kube-controller-manager" {
		t.Errorf("%s is managed by %+v, want kube-controller-manager", sl.Name, sl.ManagedFields)
	}
	if data, err := sl.Marshal(); err != nil || len(data) < 8_000 || len(data) > 30_000 {
		t.Errorf("%s has %d bytes (%v), want about 15 kB as a real one", sl.Name, len(data), err)
	}
}
