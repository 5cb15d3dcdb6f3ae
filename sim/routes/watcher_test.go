package routes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/routes"
)

const patience = 30 * time.Second

// slice leads to the pod, and to something that is no pod.
func slice(address string, ready bool) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "one", Namespace: corev1.NamespaceDefault, Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
		},
		Endpoints: []discoveryv1.Endpoint{
			{
				Addresses: []string{address}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod},
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(ready)},
			},
			{Addresses: []string{"10.9.9.9"}},
		},
	}
}

// TestWatcher: what a client is shown is noted once, in its order, and where it would be led to is known.
func TestWatcher(t *testing.T) {
	for _, kind := range []string{routes.Informs, routes.Lists} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			api := fake.NewClientset(slice(old, true))
			all := api.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault)
			ctx, cancel := context.WithCancel(t.Context())
			w, synced := routes.NewWatcher(api, "b", kind), make(chan struct{})
			var done sync.WaitGroup
			done.Go(func() {
				if err := w.Run(ctx, func() { close(synced) }); err != nil {
					t.Error(err)
				}
			})
			testkit.Value(t, patience, "all slices", synced)
			shows := func(n int) {
				t.Helper()
				testkit.Until(t, patience, "the next state", func() bool { c, _ := w.Seen(); return len(c.Shown) == n })
			}
			shows(1)
			if got, err := w.Ready("web"); err != nil || len(got) != 1 || got[0] != old {
				t.Errorf("led to %v, %v", got, err)
			}
			for i, next := range []*discoveryv1.EndpointSlice{slice(old, false), slice(here, true)} {
				if _, err := all.Update(ctx, next, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				shows(i + 2)
			}
			for address, want := range map[string]int{old: 0, here: 1} {
				if got := w.Shows(map[string]routes.Life{pod: {Pod: pod, Address: address}}); got != want {
					t.Errorf("of a pod at %s it shows %d, want %d", address, got, want)
				}
			}
			if err := all.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			shows(4)
			if got, err := w.Ready("web"); err == nil {
				t.Errorf("led to %v, and there is no slice", got)
			}
			cancel()
			done.Wait()
			c, ok := w.Seen()
			var got []map[string][]routes.Endpoint
			for _, x := range c.Shown {
				got = append(got, x.Pods)
			}
			want := []map[string][]routes.Endpoint{
				{pod: {{Address: old, Ready: true}}}, {pod: {{Address: old}}}, {pod: {{Address: here, Ready: true}}}, nil,
			}
			if diff := cmp.Diff(want, got); diff != "" || !ok || c.From.IsZero() || c.To.Before(c.From) {
				t.Errorf("from %v to %v (-want +got):\n%s", c.From, c.To, diff)
			}
		})
	}
}
