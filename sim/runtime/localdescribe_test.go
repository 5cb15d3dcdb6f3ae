package runtime

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
)

// TestDescribed: in a site whose pools are described, kube-apiserver takes the addresses of leader hubs, of each pool
// its own, and they are those of its nodes. It has a coordinator and is told so. What its hubs did is told there, too.
func TestDescribed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may add the route of addresses that kube-apiserver takes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	topology := Topology{Manager: true, Described: true, Pools: []Pool{
		{Name: "quay", Nodes: 3, Mode: Weir, Unread: true, Enrols: true, LeaderHubs: 2},
		{Name: "town", Nodes: 1, Mode: Weir, Unread: true, Enrols: true},
	}}
	site, err := (&Local{LogDir: t.TempDir()}).Up(ctx, topology, func(m string) { t.Log(m) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := site.Down(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	ids := slices.DeleteFunc(site.Parts(), func(id PartID) bool { return id == APIServer })
	if err := Start(ctx, site, ids...); err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(site.Admin())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{} // address to pool
	for _, n := range nodes.Items {
		of[n.Status.Addresses[0].Address] = n.Labels[contract.NodePoolLabel]
	}
	for pool, want := range map[string]int{"quay": 2, "town": 1} {
		var last string
		for {
			all, err := api.DiscoveryV1().EndpointSlices(contract.ManagerNamespace).List(ctx,
				metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + contract.LeaderHubPrefix + pool})
			var leaders []string
			if err == nil && len(all.Items) == 1 {
				for _, e := range all.Items[0].Endpoints {
					leaders = append(leaders, e.Addresses...)
				}
			}
			said, _ := api.CoreV1().Endpoints(contract.ManagerNamespace).Get(ctx, contract.LeaderHubPrefix+pool,
				metav1.GetOptions{})
			told := said.Annotations[contract.LeaderHubMode] == contract.ModeCoordinator &&
				strings.HasPrefix(said.Annotations[contract.LeaderHubCoordinators], "https://")
			if told && len(leaders) == want && !slices.ContainsFunc(leaders, func(a string) bool { return of[a] != pool }) {
				break
			}
			last = fmt.Sprintf("%s, annotations %v (%v)", strings.Join(leaders, " "), said.Annotations, err)
			select {
			case <-ctx.Done():
				t.Fatalf("pool %s: leader hubs %s, want %d of its nodes %v", pool, last, want, of)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	testDigest(t, site, api, "quay-1")
}
