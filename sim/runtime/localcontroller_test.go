package runtime

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
)

// TestControllerManagerSparesLeaderHubs: a kube-controller-manager that starts deletes Endpoints without a Service.
// Those of pools it leaves as they are, and their slices, too. That it has looked is told by Endpoints beside them,
// which it has to delete.
func TestControllerManagerSparesLeaderHubs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may add the route of addresses that kube-apiserver takes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	site := up(t, Topology{Manager: true, Described: true, Controllers: true, Pools: []Pool{
		{Name: "quay", Nodes: 2, Mode: Weir, Unread: true, Enrols: true},
		{Name: "town", Nodes: 1, Mode: Weir, Unread: true, Enrols: true},
	}})
	ids := slices.DeleteFunc(site.Parts(), func(id PartID) bool { return id == APIServer || id == Scheduler })
	if err := Start(ctx, site, ids...); err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(site.Admin())
	if err != nil {
		t.Fatal(err)
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for !ok() {
			select {
			case <-ctx.Done():
				t.Fatalf("it never came: %s", what)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	endpoints, slicesOf := api.CoreV1().Endpoints(contract.ManagerNamespace),
		api.DiscoveryV1().EndpointSlices(contract.ManagerNamespace)
	objects := func() map[string]types.UID {
		all := map[string]types.UID{}
		for _, pool := range []string{"quay", "town"} {
			name := contract.LeaderHubPrefix + pool
			if e, err := endpoints.Get(ctx, name, metav1.GetOptions{}); err == nil && len(e.Subsets) == 1 {
				all["Endpoints of "+pool] = e.UID
			}
			s, err := slicesOf.List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
			if err == nil && len(s.Items) == 1 {
				all["EndpointSlice of "+pool] = s.Items[0].UID
			}
		}
		return all
	}
	eventually("leader hubs of both pools", func() bool { return len(objects()) == 4 })
	before := objects()
	manager, err := site.Part(ControllerManager)
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.Kill(); err != nil {
		t.Fatal(err)
	}
	orphan := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "orphan"}, Subsets: []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: "10.6.6.6"}},
		Ports:     []corev1.EndpointPort{{Name: "pool", Port: contract.HubPoolPort}},
	}}}
	if _, err := endpoints.Create(ctx, orphan, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := manager.Start(ctx); err != nil {
		t.Fatal(err)
	}
	eventually("kube-controller-manager deletes Endpoints without a Service", func() bool {
		_, err := endpoints.Get(ctx, orphan.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if now := objects(); !maps.Equal(now, before) {
		t.Errorf("leader hubs after the restart: %v, before %v", now, before)
	}
}
