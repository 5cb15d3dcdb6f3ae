package runtime

import (
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	poolv1 "github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/parts"
)

// maxDigest bounds what a digest adds to a heartbeat, both ways: docs/metrics.md says so.
const maxDigest = 360

// testDigest: what two clients of a node get from its relays stands in the status of its Pool and in the metrics of
// weir-manager, to the byte, after the next heartbeat of its kubelet. The Lease keeps neither that nor its
// managedFields: a heartbeat took them away.
func testDigest(t *testing.T, site Site, api kubernetes.Interface, name string) {
	site.(*localSite).pulse.close() // heartbeats come when they are wanted
	hub, err := site.Part(HubOf(name))
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := func() int64 {
		m, err := hub.Metrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return int64(m.Sum("weir_hub_served_bytes_total", `route="relay"`))
	}
	read := func(identity string) (n int64) {
		raw, err := clientOf(t, site, name, identity).DiscoveryV1().RESTClient().Get().AbsPath(
			"/apis/discovery.k8s.io/v1/endpointslices").DoRaw(t.Context())
		if err != nil {
			return 0
		}
		return int64(len(raw))
	}
	wait(t, "the relay of "+name+" to answer", func() bool {
		before := served()
		n := read("kube-proxy")
		return n > 0 && served() >= before+n
	})
	before, got := served(), int64(0)
	for range 20 {
		got += read("kube-proxy") + read("coredns")
	}
	after := served()
	if after-before != got {
		t.Errorf("two clients got %d bytes, and %d are counted", got, after-before)
	}

	defer readsServices(t, site, name)()
	defer kubeletOf(t, site, name)()
	var told poolv1.Hub
	wait(t, "the Pool to tell what "+name+" has served", func() bool {
		raw, err := api.CoreV1().RESTClient().Get().AbsPath("/apis/weir.dev/v1alpha1/pools/quay").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var p poolv1.Pool
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		for _, h := range p.Status.Hubs {
			if h.Node == name {
				told = h
			}
		}
		return told.ServedBytes >= after && p.Status.SavedBytes != nil && p.Status.UplinkBytes != nil
	})
	if told.ServedBytes != after || told.FreshnessSeconds == nil || told.Role == "Leader" && told.FeedBytes == 0 ||
		told.UplinkDownBytes == 0 || told.Version == "" {
		t.Errorf("the Pool tells %+v; served are %d", told, after)
	}
	of := []string{`pool="quay"`, `node="` + name + `"`}
	wait(t, "weir-manager to say the same", func() bool {
		m := managerMetrics(t, site)
		return int64(m.Sum("weir_manager_node_served_bytes_total", of...)) == told.ServedBytes &&
			int64(m.Sum("weir_manager_node_feed_bytes_total", of...)) == told.FeedBytes &&
			int64(m.Sum("weir_manager_node_uplink_bytes_total", of...)) == told.UplinkDownBytes+told.UplinkUpBytes
	})
	leases := api.CoordinationV1().Leases(contract.NodeLeaseNamespace)
	wait(t, "the next heartbeat to take it away", func() bool {
		l, err := leases.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && l.Annotations[contract.DigestAnnotation] == "" && len(l.ManagedFields) == 0
	})
	readsTold(t, api, name)
	digestCosts(t, api, told)
}

// readsServices has a client of a node read what its pool does not share, until done is called.
func readsServices(t *testing.T, site Site, name string) (done func()) {
	t.Helper()
	services := clientOf(t, site, name, "kube-proxy").CoreV1().Services("")
	all, err := services.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := services.Watch(t.Context(), metav1.ListOptions{ResourceVersion: all.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	return watch.Stop
}

// readsTold: what a client of a node reads of the whole cluster stands in the status of its Pool a minute after its hub
// was started, and on the Lease for one heartbeat.
func readsTold(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	testkit.Until(t, 3*time.Minute, "the Pool to tell that a client of "+name+" reads services", func() bool {
		raw, err := api.CoreV1().RESTClient().Get().AbsPath("/apis/weir.dev/v1alpha1/pools/quay").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var p poolv1.Pool
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		for _, h := range p.Status.Hubs {
			if h.Node != name || h.Reads == nil {
				continue
			}
			t.Logf("%s reads %+v", name, *h.Reads)
			for _, r := range h.Reads.Passed {
				if r.Resource == "services.v1." && r.Bytes > 0 {
					return true
				}
			}
		}
		return false
	})
	wait(t, "the next heartbeat to take it away", func() bool {
		l, err := api.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && l.Annotations[contract.ReadsAnnotation] == ""
	})
}

// digestCosts: with the managed fields that kube-apiserver keeps of it a digest adds a bounded number of bytes to a
// heartbeat and its answer.
func digestCosts(t *testing.T, api kubernetes.Interface, h poolv1.Hub) {
	leases := api.CoordinationV1().Leases(contract.NodeLeaseNamespace)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "costs"}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("costs"), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// bytes are those of a heartbeat and its answer. A kubelet sends the managed fields that it has read; a hub that
	// writes a heartbeat again does not.
	bytes := func(text string, managed bool) (n int) {
		delete(lease.Annotations, contract.DigestAnnotation)
		if text != "" {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, contract.DigestAnnotation, text)
		}
		if !managed {
			lease.ManagedFields = nil
		}
		n = lease.Size()
		if lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return n + lease.Size()
	}
	without, usual := bytes("", false), bytes("", true)
	for _, d := range []digest.Digest{
		{
			Version: h.Version, Role: digest.Role(h.Role), Started: h.Started.Time, Down: 123_456_789, Up: 12_345_678,
			Feed: 123_456_789, Served: 987_654_321,
		},
		{
			Version: strings.Repeat("v", 99), Age: math.MaxInt64, Started: h.Started.Time, Down: math.MaxInt64,
			Up: math.MaxInt64, Feed: math.MaxInt64, Served: math.MaxInt64,
		},
	} {
		with, next := bytes(d.Text(), false), bytes("", false)
		t.Logf("a digest of %d adds %d bytes to a heartbeat and its answer of %d; with the next one that is %d, and %d as "+
			"a kubelet sends two: %s",
			len(d.Text()), with-without, without, with+next, 2*usual, d.Text())
		if with-without > maxDigest {
			t.Errorf("a digest of %d adds %d bytes, want %d at most", len(d.Text()), with-without, maxDigest)
		}
		if len(d.Text()) <= 80 && with+next > 2*usual {
			t.Errorf("two heartbeats with a digest are %d bytes, want %d at most, as without", with+next, 2*usual)
		}
	}
}

func managerMetrics(t *testing.T, site Site) parts.Metrics {
	t.Helper()
	address, err := site.(*localSite).blocks[0].Addr(1)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+net.JoinHostPort(address, managerMetricsPort)+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return parts.ParseMetrics(string(text))
}
