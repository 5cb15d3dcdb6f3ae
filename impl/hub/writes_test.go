package hub

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestWritesWithoutCloud: the status that a kubelet writes while the cloud is away is kept, shown, survives a restart,
// and is there before clients see the cloud's state again. All else is refused.
func TestWritesWithoutCloud(t *testing.T) {
	for name, more := range map[string][]string{
		"nodes are node-scope": nil, "nodes are pool-scope": {"nodes.v1.", "pods.v1."},
	} {
		t.Run(name, func(t *testing.T) { testWritesWithoutCloud(t, more) })
	}
}

func testWritesWithoutCloud(t *testing.T, more []string) {
	b, link := offlineBed(t)
	b.config.PoolScopeResources = append(b.config.PoolScopeResources, more...)
	cloud := b.clouds[0]
	cloud.node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "uid", ResourceVersion: "100"}}
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node, token := b.client(&cert), b.client(nil)
	b.config.Anonymous = true
	stop := b.start()
	b.here()
	path := "/api/v1/nodes/edge-1"
	kernel := func(c *http.Client) string {
		t.Helper()
		resp, body := get(t, c, b.url()+path)
		var n corev1.Node
		if err := json.Unmarshal([]byte(body), &n); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s %s", path, resp.Status, body)
		}
		return n.Status.NodeInfo.KernelVersion
	}
	kernel(node)
	b.kept(1)
	link.set(true)
	b.away()

	patch := func(c *http.Client, header ...string) (*http.Response, string) {
		t.Helper()
		return do(t, c, http.MethodPatch, b.url()+path+"/status", []byte(`{"status":{"nodeInfo":{"kernelVersion":"6.1"}}}`),
			append(header, "Content-Type", "application/strategic-merge-patch+json")...)
	}
	if resp, body := patch(node); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"kernelVersion":"6.1"`) {
		t.Fatalf("the node's status: %s %s", resp.Status, body)
	}
	for what, resp := range map[string]*http.Response{
		"with a token":      first(patch(token, "Authorization", "Bearer system:node:edge-1")),
		"without anything":  first(patch(token)),
		"in another's name": first(patch(node, "Impersonate-User", "alice")),
		"a deletion":        first(do(t, node, http.MethodDelete, b.url()+"/api/v1/namespaces/default/pods/web", nil)),
		"another lease": first(
			do(t, node, http.MethodPut, b.url()+"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x", []byte("{}"))),
	} {
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", what, resp.Status)
		}
	}
	if resp, body := do(t, node, http.MethodPost, b.url()+"/api/v1/nodes", []byte(`{"metadata":{"name":"edge-1"}}`),
		"Content-Type", runtime.ContentTypeJSON); resp.StatusCode != http.StatusConflict {
		t.Errorf("the node registers: %s %s", resp.Status, body)
	}
	if got := kernel(node); got != "6.1" {
		t.Errorf("the kubelet reads %q after its write", got)
	}
	stop()
	b.start()
	b.away()
	if got := kernel(node); got != "6.1" {
		t.Errorf("the kubelet reads %q after a restart", got)
	}
	link.set(false)
	b.here()
	if got := kernel(node); got != "6.1" {
		t.Errorf("the kubelet reads %q when the cloud is back", got)
	}
	cloud.set(func() {
		if cloud.node.Status.NodeInfo.KernelVersion != "6.1" || cloud.node.UID != "uid" {
			t.Errorf("the cloud has %+v", cloud.node)
		}
	})
}

// TestWritesBeforeReads: a hub that starts with something that waits shows nobody the cloud's state before the cloud
// has that, though the first to ask may be the first to hear the cloud.
func TestWritesBeforeReads(t *testing.T) {
	b, link := offlineBed(t)
	cloud := b.clouds[0]
	cloud.node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "uid", ResourceVersion: "100"}}
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node := b.client(&cert)
	stop := b.start()
	b.here()
	const path = "/api/v1/nodes/edge-1"
	get(t, node, b.url()+path, "Accept", runtime.ContentTypeProtobuf)
	b.kept(1)
	for round := range 5 {
		link.set(true)
		b.away()
		version := fmt.Sprint("6.", round)
		if resp, body := do(t, node, http.MethodPatch, b.url()+path+"/status",
			fmt.Appendf(nil, `{"status":{"nodeInfo":{"kernelVersion":%q}}}`, version),
			"Content-Type", "application/strategic-merge-patch+json"); resp.StatusCode != http.StatusOK {
			t.Fatalf("the node's status: %s %s", resp.Status, body)
		}
		stop()
		link.set(false)
		stop = b.start()
		eventually(t, "the cloud to have it", func() (there bool) {
			resp, body := get(t, node, b.url()+path, "Accept", runtime.ContentTypeProtobuf)
			var n corev1.Node
			_, raw, err := wire.SplitEnvelope([]byte(body))
			if err != nil || n.Unmarshal(raw) != nil || n.Status.NodeInfo.KernelVersion != version {
				t.Fatalf("the kubelet reads %s %v: %s, want %s", resp.Status, err, n.Status.NodeInfo.KernelVersion, version)
			}
			cloud.set(func() { there = cloud.node.Status.NodeInfo.KernelVersion == version })
			return there
		})
		b.here()
	}
}

func first(resp *http.Response, _ string) *http.Response { return resp }

// TestUnsentWrites: a kubelet that starts while a cloud answers nothing is not kept waiting until a connection for each
// of its writes has been tried in vain: what was not sent is kept as soon as the cloud is judged to be away. So does a
// hub that has writes of before, for which its clients are kept from the cloud.
func TestUnsentWrites(t *testing.T) {
	b, _ := offlineBed(t)
	b.clouds[0].node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "uid", ResourceVersion: "100"}}
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	stop := b.start()
	b.here()
	get(t, b.client(&cert), b.url()+"/api/v1/nodes/edge-1")
	b.kept(1)
	stop()
	b.config.CloudServers = []string{newHole(t)}
	t.Run("nothing waits", func(t *testing.T) {
		b.writesUnsent(t, &cert, http.StatusOK, http.MethodPatch, "/edge-1/status",
			`{"status":{"nodeInfo":{"kernelVersion":"6.1"}}}`, "application/strategic-merge-patch+json")
	})
	t.Run("writes of before wait", func(t *testing.T) {
		b.writesUnsent(t, &cert, http.StatusConflict, http.MethodPost, "", `{"metadata":{"name":"edge-1"}}`,
			runtime.ContentTypeJSON)
	})
}

func (b *bed) writesUnsent(t *testing.T, cert *tls.Certificate, want int, method, path, body, media string) {
	t.Helper()
	defer b.start()()
	const writes = 4
	var all sync.WaitGroup
	for range writes {
		all.Go(func() {
			if resp, body := do(t, b.client(cert), method, b.url()+"/api/v1/nodes"+path, []byte(body), "Content-Type",
				media); resp.StatusCode != want {
				t.Errorf("%s: %s", resp.Status, body)
			}
		})
	}
	all.Wait()
	if n := b.hub.Status().Bytes[uplink.ClassNode].Connections; n >= writes {
		t.Errorf("%d connections were tried for %d writes", n, writes)
	}
}
