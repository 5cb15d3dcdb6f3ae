package hub

import (
	"bufio"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// TestDigest: a heartbeat tells the cloud what the hub has served and fetched, to the byte, and the next ones do not:
// the Lease is as the kubelet knows it again, in the cloud, and in the pool all the time.
func TestDigest(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	p.clouds[0].put("default", "served")
	p.start("edge-1")
	b, cloud := p.hubs["edge-1"], p.clouds[0].leases
	eventually(t, "edge-1 to lead", func() bool { return p.settled("edge-1") == "edge-1" })
	p.shows("edge-1", "served")
	counted := func() int64 { return b.hub.metrics.served.Bytes(answer.ByRelay) }
	before, got := counted(), int64(0)
	for range 2 {
		client := b.client(nil)
		for range 5 {
			resp, body := get(t, client, b.url()+"/api/v1/endpoints", alice...)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			got += int64(len(body))
		}
	}
	if n := counted() - before; n != got || got == 0 {
		t.Errorf("%d bytes are counted, and clients got %d", n, got)
	}

	k := b.kubelet()
	k.beats(http.StatusNotFound, http.StatusCreated)
	d, err := digest.Parse(cloud.get("edge-1").Annotations[contract.DigestAnnotation])
	check(t, err)
	feed := b.hub.cloud.Bytes(uplink.ClassPool)
	if d.Served != before+got || d.Role != digest.Leader || d.Age < 0 || d.Version == "" || d.Feed == 0 ||
		d.Feed > feed.Down+feed.Up || d.Down+d.Up <= d.Feed {
		t.Errorf("it tells %+v; served %d, fetched %+v", d, before+got, feed)
	}
	if k.lease.Annotations[contract.DigestAnnotation] == "" {
		t.Error("the kubelet does not see what stands in the cloud")
	}
	p.mirrored(k, false)
	for range 2 {
		k.beats(http.StatusOK)
		if l := cloud.get("edge-1"); len(l.Annotations) != 0 {
			t.Errorf("the next heartbeat has annotations %v", l.Annotations)
		}
		if l := p.coordinator.leases.get("edge-1"); l.Annotations[contract.DigestAnnotation] != "" {
			t.Errorf("the pool is told: %v", l.Annotations)
		}
	}
	if n, err := testutil.GatherAndCount(b.hub.metrics.registry, "weir_hub_served_bytes_total"); n < 2 || err != nil {
		t.Errorf("%d routes, %v", n, err)
	}
}

// TestDigestWaits: what did not reach the cloud is told by the heartbeat that does, and a hub that keeps a heartbeat
// shows its kubelet nothing of it.
func TestDigestWaits(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	link := p.linked("edge-1")
	b, cloud := p.hubs["edge-1"], p.clouds[0].leases
	p.start("edge-1")
	k := b.kubelet()
	link.set(true)
	k.beats(http.StatusNotFound, http.StatusCreated)
	if len(k.lease.Annotations) != 0 {
		t.Errorf("kept with annotations %v", k.lease.Annotations)
	}
	link.set(false)
	eventually(t, "the cloud to be healthy", b.hub.cloud.Healthy)
	_, err := cloud.Create(t.Context(), "somebody", k.lease)
	check(t, err)
	// one in between is read in the hub and refused by the cloud: the Lease there is another one.
	eventually(t, "a heartbeat to tell", func() bool {
		k.lease = nil
		k.beat()
		_, err := digest.Parse(cloud.get("edge-1").Annotations[contract.DigestAnnotation])
		return err == nil
	})
	patch := []byte(`{"spec":{"renewTime":"2027-01-01T00:00:00.000000Z"}}`)
	resp, _ := do(t, k.client, http.MethodPatch,
		b.url()+"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-1", patch, "Content-Type",
		"application/merge-patch+json", "Accept", "application/json")
	if l := cloud.get("edge-1"); resp.StatusCode != http.StatusOK || len(l.Annotations) != 0 ||
		l.Spec.RenewTime.Year() != 2027 {
		t.Errorf("a heartbeat that patches: %s, %v", resp.Status, l)
	}
}

// TestReads: what clients read of the whole cluster at the cloud is counted to the byte, of a custom resource that they
// watch. What a relay answered is not in it, and neither is what is in one namespace or the node's own.
func TestReads(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	p.clouds[0].put("default", "served")
	p.clouds[0].install("first")
	p.start("edge-1")
	b := p.hubs["edge-1"]
	eventually(t, "edge-1 to lead", func() bool { return p.settled("edge-1") == "edge-1" })
	p.shows("edge-1", "served")
	client, got := b.client(nil), int64(0)
	for path, counts := range map[string]bool{
		"/apis/example.com/v1/widgets": true, "/apis/example.com/v1/namespaces/default/widgets": false,
		"/api/v1/endpoints": false, "/api/v1/nodes?fieldSelector=metadata.name%3Dedge-1": false,
	} {
		for range 3 {
			resp, body := get(t, client, b.url()+path, alice...)
			if resp.StatusCode != http.StatusOK || body == "" {
				t.Fatalf("%s: %d %s", path, resp.StatusCode, body)
			}
			if counts {
				got += int64(len(body))
			}
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		b.url()+"/apis/example.com/v1/widgets?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"+
			"allowWatchBookmarks=true", nil)
	check(t, err)
	req.Header.Set(alice[0], alice[1])
	watch, err := client.Do(req)
	check(t, err)
	defer watch.Body.Close()
	frames := bufio.NewScanner(watch.Body)
	for frames.Scan() {
		if got += int64(len(frames.Bytes()) + 1); strings.Contains(frames.Text(), "BOOKMARK") {
			break
		}
	}
	want := digest.Reads{Passed: []digest.Passed{{Resource: "widgets.v1.example.com", Bytes: got}}}
	if r := b.hub.door.Demand.Reads(b.hub.sources.Names()); !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, want %+v", r, want)
	}
}
