package offlinetest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/parts"
)

// scopeGrants is what a hub needs beside its manifests to relay pods and nodes, and what a pod needs to list nodes. No
// other test needs it: hubs have the least that their scope asks for.
const scopeGrants = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "test:pods-and-nodes"}
rules:
- {apiGroups: [""], resources: [pods, nodes], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "test:pods-and-nodes"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "test:pods-and-nodes"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "weir:hub:pool-a:edge-1"}
- {kind: ServiceAccount, namespace: default, name: default}
`

// TestPodsAndNodesInScope: with pods and nodes in pool scope, a hub that is killed while the cloud is away keeps the
// statuses of its node and pods, tells the kubelet that its node is registered, and knows the pods by whose tokens
// others read the relays. When the cloud is back, it gets all.
func TestPodsAndNodesInScope(t *testing.T) {
	b := newBed(t, parts.Flags{
		"pool-scope-resources": []string{endpointSlices, "+pods.v1.", "+nodes.v1."},
	})
	check(t, b.cloud.Apply(t.Context(), []byte(scopeGrants)))
	b.fill(2, 2)
	for resource, n := range map[string]float64{"pods.v1.": 2, "nodes.v1.": 1} {
		eventually(t, "the relay of "+resource, func() bool {
			return b.metric("weir_relay_objects", "resource", resource) >= n
		})
	}
	a := b.startAgent("kubelet", runtime.ContentTypeProtobuf, 2)
	a.synced()
	pod, err := b.admin.CoreV1().Pods("default").Get(t.Context(), "pod-00", metav1.GetOptions{})
	check(t, err)
	token, err := b.admin.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}, metav1.CreateOptions{})
	check(t, err)
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: b.ca}})
	check(t, err)
	tr := &http.Transport{TLSClientConfig: config}
	t.Cleanup(tr.CloseIdleConnections)
	ofPod, kubelet := &http.Client{Transport: tr}, b.httpClient()
	call := func(c *http.Client, method, path, media, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
		check(t, err)
		req.Header.Set("Content-Type", media)
		req.Header.Set("User-Agent", "kubelet/v1.37")
		if c == ofPod {
			req.Header.Set("Authorization", "Bearer "+token.Status.Token)
			req.Header.Set("User-Agent", "agent/v1")
		}
		resp, err := c.Do(req)
		check(t, err)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		check(t, err)
		return resp.StatusCode, string(answer)
	}
	if code, answer := call(ofPod, http.MethodGet, "/api/v1/nodes", "", ""); code != http.StatusOK {
		t.Fatalf("a pod lists nodes: %d %s", code, answer)
	}
	b.kept(3 + 2)
	eventually(t, "the relays to be on the disk", func() bool {
		return b.metric("weir_snapshot_resource_version", "resource", "nodes.v1.") > 0 &&
			b.metric("weir_snapshot_resource_version", "resource", "pods.v1.") > 0
	})
	a.stop()
	b.cut()
	b.restart()
	eventually(t, "the hub to see that the cloud is away",
		func() bool { return b.metric("weir_hub_cloud_server_healthy") == 0 })

	status := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"message":"while away"}}`, pod.UID)
	for _, test := range []struct {
		what, method, path, media, body string
		by                              *http.Client
		code                            int
		says                            string
	}{
		{
			"a pod's status", http.MethodPatch, "/api/v1/namespaces/default/pods/pod-00/status", strategicPatch, status, kubelet,
			200, "while away",
		},
		{
			"the node's status", http.MethodPatch, "/api/v1/nodes/" + edge + "/status", strategicPatch,
			`{"status":{"nodeInfo":{"bootID":"while-away"}}}`, kubelet, 200, "while-away",
		},
		{
			"registration", http.MethodPost, "/api/v1/nodes", "application/json",
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + edge + `"}}`, kubelet, 409, "AlreadyExists",
		},
		{"its pod", http.MethodGet, "/api/v1/namespaces/default/pods/pod-00", "", "", kubelet, 200, "while away"},
		{
			"its pods", http.MethodGet, "/api/v1/pods?fieldSelector=spec.nodeName%3D" + edge, "", "", kubelet, 200, "while away",
		},
		{"its node", http.MethodGet, "/api/v1/nodes/" + edge, "", "", kubelet, 200, "while-away"},
		{"the token of a pod", http.MethodGet, "/api/v1/nodes", "", "", ofPod, 200, edge},
	} {
		if code, answer := call(test.by, test.method, test.path, test.media, test.body); code != test.code ||
			!strings.Contains(answer, test.says) {
			t.Errorf("%s: %d, want %d with %q: %s", test.what, code, test.code, test.says, answer)
		}
	}
	b.heal()
	eventually(t, "the cloud to have it", func() bool {
		p, errPod := b.admin.CoreV1().Pods("default").Get(t.Context(), "pod-00", metav1.GetOptions{})
		n, errNode := b.admin.CoreV1().Nodes().Get(t.Context(), edge, metav1.GetOptions{})
		return errPod == nil && errNode == nil && p.Status.Message == "while away" && n.Status.NodeInfo.BootID == "while-away"
	})
}
