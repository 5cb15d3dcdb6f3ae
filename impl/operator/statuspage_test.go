package operator

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

var update = flag.Bool("update", false, "write testdata")

var now = time.Date(2026, 11, 23, 15, 0, 0, 0, time.UTC)

// cluster has a pool with a coordinator, one with leader hubs, and one of before: its hubs tell nothing, and it has no
// Pool.
func cluster() *commands.View {
	v := &commands.View{Now: now, Leases: map[string]coordinationv1.Lease{}}
	add := func(pool, name string, ago time.Duration) {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{contract.NodePoolLabel: pool}}}
		n.Annotations = map[string]string{
			contract.HoldsAnnotation: `{"certificates":{"hub":{"begin":"2026-11-01T00:00:00Z","end":"2027-02-01T00:00:00Z",` +
				`"renews":true}}}`,
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: contract.JoinedCondition, Status: corev1.ConditionTrue}}
		v.Nodes = append(v.Nodes, n)
		v.Leases[name] = coordinationv1.Lease{
			Spec: coordinationv1.LeaseSpec{
				RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-ago))), LeaseDurationSeconds: ptr.To[int32](40),
			},
		}
	}
	add("harbour", "edge-1", 3*time.Second)
	add("harbour", "edge-2", 4*time.Second)
	add("harbour", "edge-3", time.Hour)
	add("harbour", "edge-4", 5*time.Second)
	add("harbour", "edge-5", 5*time.Second)
	add("old", "old-1", 6*time.Second)
	add("quay", "quay-1", 7*time.Second)
	hub := func(node, role string, told time.Duration, age *int64, down, up, feed, served int64) poolv1.Hub {
		return poolv1.Hub{
			Node: node, Version: "v0.3.0", Role: role, Told: metav1.NewTime(now.Add(-told)),
			Started:          metav1.NewTime(now.Add(-26 * time.Hour)),
			FreshnessSeconds: age, UplinkDownBytes: down, UplinkUpBytes: up, FeedBytes: feed, ServedBytes: served,
		}
	}
	harbour := poolv1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "harbour"}}
	harbour.Status = poolv1.Status{
		Mode: poolv1.ModeCoordinator, Leader: "edge-1", Coordinators: []string{"https://10.0.0.1:10270"}, Hubs: []poolv1.Hub{
			hub("edge-1", "Leader", 34*time.Minute, ptr.To[int64](12), 123_456_789, 2_345_678, 120_000_000, 380_000_000),
			hub("edge-2", "Follower", 2*time.Minute, ptr.To[int64](14), 1_000_000, 999_400, 900, 1_310_000_000),
			hub("edge-3", "Follower", 61*time.Minute, ptr.To[int64](500), 0, 0, 0, 0), // not heard since
			// its hub is gone, and its kubelet calls the cloud.
			hub("edge-5", "Follower", 121*time.Minute, ptr.To[int64](600), 0, 0, 0, 0),
		},
	}
	harbour.Status.Hubs[0].Images = &poolv1.HubImages{PulledBytes: 50_000_000, ServedBytes: 100_000_000}
	harbour.Status.Hubs[1].Images = &poolv1.HubImages{PulledBytes: 1_000_000, SavedBytes: 49_000_000}
	quay := poolv1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "quay"}}
	quay.Status = poolv1.Status{
		Mode: poolv1.ModeLeaderHubs, Hubs: []poolv1.Hub{hub("quay-1", "Leader", time.Second, nil, 99_950, 1, 99_000, 512)},
	}
	v.Pools = []poolv1.Pool{harbour, quay}
	for _, name := range []string{"harbour", "old", "quay"} {
		v.NodePools = append(v.NodePools, nodepool.NodePool{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: nodepool.Status{
				LeaderEndpoints: []nodepool.Leader{{NodeName: name + "-1"}},
			},
		})
	}
	return v
}

// TestPage: what a person and a program see of pools whose hubs have told of themselves, and of such that have not.
func TestPage(t *testing.T) {
	for _, form := range []string{"table", "wide", "json", "yaml"} {
		var got bytes.Buffer
		if err := pageOf(cluster(), "").Write(&got, form, now); err != nil {
			t.Fatal(err)
		}
		golden(t, "page."+form, got.Bytes())
	}
}

// golden compares what was written with a file of testdata, or makes it that file with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// TestSize: bytes for people have three digits or so, and a unit that fits.
func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 99_949: "99.9 kB", 99_950: "100 kB", 999_499: "999 kB", 999_500: "1.0 MB",
		1_250_000_000:     "1.2 GB",
		3_500_000_000_000: "3.5 TB", 9_000_000_000_000_000: "9000 TB", -1: "-1 B", -98_488: "-98.5 kB", -2_000_000: "-2.0 MB",
	} {
		if got := size(&n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := size(nil); got != "" {
		t.Errorf("unknown: %q", got)
	}
}
