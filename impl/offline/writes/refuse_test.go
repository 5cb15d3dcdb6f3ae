package writes

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/store"
)

const (
	strategic = string(types.StrategicMergePatchType)
	merge     = string(types.MergePatchType)
)

// TestRefused: what cannot be done without the cloud is refused, with a reason, and leaves nothing behind.
func TestRefused(t *testing.T) {
	b := newBed(t, clock.RealClock{})
	b.knowNode()
	b.knowPod("web")
	other := testPod("other")
	other.Spec.NodeName = "edge-2"
	b.know(podKind(), pods(), other)
	check(t, b.store.NotFound(component, pods(), store.Protobuf, store.Key{Namespace: "default", Name: "gone"}))
	b.set(member.CloudAway)
	pod, statusOf := podPath("web"), podPath("web")+"/status"
	const node = "/api/v1/nodes/" + nodeName
	for _, c := range []struct {
		what, method, uri, media, body string
		code                           int
		says                           string
		header                         []string
	}{
		{
			"another Lease", "PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x", mediaJSON, `{}`, 503,
			"both sides|other as well", nil,
		},
		{
			"a new Lease", "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", mediaJSON, `{}`, 503,
			"lease", nil,
		},
		{"deleting a pod", "DELETE", pod, "", ``, 503, "the kubelet deletes its pods", nil},
		{"deleting pods", "DELETE", "/api/v1/namespaces/default/pods", "", ``, 503, "come back", nil},
		{"a pod", "POST", "/api/v1/namespaces/default/pods", mediaJSON, `{}`, 503, "create pods", nil},
		{"a change of a pod", "PATCH", pod, strategic, `{"metadata":{"labels":{"a":"b"}}}`, 503, "patch pods", nil},
		{"an eviction", "POST", pod + "/eviction", mediaJSON, `{}`, 503, "pods/eviction", nil},
		{"a config map", "PUT", "/api/v1/namespaces/default/configmaps/c", mediaJSON, `{}`, 503, "update configmaps", nil},
		{
			"a custom resource", "POST", "/apis/example.com/v1/namespaces/default/widgets", mediaJSON, `{}`, 503,
			"create widgets.example.com", nil,
		},
		{
			"a CSR", "POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", mediaJSON, `{}`, 503,
			"certificatesigningrequests", nil,
		},
		{
			"a review of a token", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", mediaJSON, `{}`, 503, "tokenreviews",
			nil,
		},
		{
			"the status of a namespace", "PUT", "/api/v1/namespaces/default/status", mediaJSON, `{}`, 503, "namespaces/status",
			nil,
		},
		{"what is no resource", "POST", "/x", mediaJSON, `{}`, 503, "the cloud is away", nil},
		{"deleting the node", "DELETE", node, "", ``, 503, "delete nodes", nil},
		{"a taint", "PATCH", node, strategic, `{"spec":{"unschedulable":true}}`, 503, "patch nodes", nil},
		{
			"another node", "POST", "/api/v1/nodes", mediaJSON, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"edge-2"}}`,
			503, "create nodes", nil,
		},
		{
			"the status of another node", "PATCH", "/api/v1/nodes/edge-2/status", strategic, `{}`, 403, "not allowed to modify",
			nil,
		},
		{
			"the status of another node's pod", "PATCH", podPath("other") + "/status", strategic, `{}`, 403, "spec.nodeName",
			nil,
		},
		{"the status of a pod that is gone", "PATCH", podPath("gone") + "/status", strategic, `{}`, 404, "not found", nil},
		{
			"the status of an unknown pod", "PATCH", podPath("new") + "/status", strategic, `{}`, 503, "not known on this node",
			nil,
		},
		{
			"labels with a pod's status", "PATCH", statusOf, strategic, `{"metadata":{"labels":{"a":"b"}}}`, 503,
			"patch pods/status", nil,
		},
		{
			"finalizers with a status", "PATCH", node + "/status", merge, `{"metadata":{"finalizers":["a"]}}`, 503,
			"patch nodes/status", nil,
		},
		{"another name", "PATCH", node + "/status", merge, `{"metadata":{"name":"edge-2"}}`, 400, "does not match", nil},
		{"another uid", "PATCH", statusOf, merge, `{"metadata":{"uid":"x"}}`, 409, "Precondition failed", nil},
		{
			"a version of before", "PATCH", statusOf, merge, `{"metadata":{"resourceVersion":"1"}}`, 409, "Precondition failed",
			nil,
		},
		{"a JSON patch", "PATCH", statusOf, "application/json-patch+json", `[]`, 415, "content type", nil},
		{"server-side apply", "PATCH", statusOf, "application/apply-patch+yaml", `{}`, 415, "content type", nil},
		{"no JSON", "PATCH", statusOf, merge, `{`, 400, "cannot be applied", nil},
		{"a status that is none", "PATCH", statusOf, merge, `{"status":{"phase":5}}`, 400, "cannot be applied", nil},
		{"a dry run", "PATCH", statusOf + "?dryRun=All", merge, `{"status":{"message":"x"}}`, 503, "patch pods/status", nil},
		{
			"a path that is not clean", "PATCH", "/" + statusOf, merge, `{"status":{"message":"x"}}`, 503, "patch pods/status",
			nil,
		},
		{
			"in another name", "PATCH", statusOf, merge, `{"status":{"message":"x"}}`, 503, "in another name",
			[]string{"Impersonate-User", "eve"},
		},
		{"a body that is compressed", "PATCH", statusOf, merge, `{}`, 503, "", []string{"Content-Encoding", "gzip"}},
		{
			"an event without a name", "POST", "/api/v1/namespaces/default/events", mediaJSON,
			`{"metadata":{"generateName":"e"}}`, 503, "create events", nil,
		},
		{
			"an event of another namespace", "POST", "/api/v1/namespaces/default/events", mediaJSON,
			`{"metadata":{"name":"e","namespace":"x"}}`, 400, "namespace", nil,
		},
		{"an event that is none", "POST", "/api/v1/namespaces/default/events", mediaProtobuf, `{}`, 400, "no Event", nil},
		{
			"an answer that cannot be given", "PATCH", statusOf, merge, `{}`, 406, "media types",
			[]string{"Accept", "application/yaml"},
		},
		{
			"a token", "POST", "/api/v1/namespaces/default/serviceaccounts/sa/token", mediaJSON, `{"spec":{"audiences":["a"]}}`,
			503, "no token was issued for service account default/sa", nil,
		},
	} {
		header := append([]string{"Content-Type", c.media, "User-Agent", "kubelet/v1.37.1"}, c.header...)
		resp, body := b.send(c.method, c.uri, []byte(c.body), header...)
		var s metav1.Status
		check(t, json.Unmarshal(body, &s))
		told := false
		for _, part := range strings.Split(c.says, "|") {
			told = told || strings.Contains(s.Message, part)
		}
		if resp.StatusCode != c.code || int(s.Code) != c.code || s.Kind != "Status" || !told {
			t.Errorf("%s: %d %q, want %d that says %q", c.what, resp.StatusCode, s.Message, c.code, c.says)
		}
		if c.code == 503 && (resp.Header.Get("Retry-After") == "" || !strings.Contains(s.Message, "the cloud is away")) {
			t.Errorf("%s: Retry-After %q, %s", c.what, resp.Header.Get("Retry-After"), s.Message)
		}
	}
	if n := b.writes.queue.Len(); n != 0 {
		t.Errorf("%d entries wait: %v", n, b.writes.queue.Entries()[0])
	}
	if n := len(b.cloud.written()); n != 0 {
		t.Errorf("%d writes reached the cloud", n)
	}
}

// TestPassed: while the cloud is there everything is its to do.
func TestPassed(t *testing.T) {
	b := newBed(t, clock.RealClock{})
	b.knowPod("web")
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet} {
		if resp, body := b.send(method, "/api/v1/nodes/x", []byte("{}")); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", method, resp.StatusCode, body)
		}
	}
	resp, body := b.send("PATCH", podPath("web")+"/status", []byte(`{"status":{"message":"x"}}`), "Content-Type", merge)
	if resp.StatusCode != http.StatusOK || b.cloud.get(podPath("web")).in("status").text("message") != "x" ||
		b.writes.queue.Len() != 0 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// TestFallback: a write that finds no connection is kept, though nobody knew that the cloud is away.
func TestFallback(t *testing.T) {
	b := newBed(t, clock.RealClock{})
	b.knowPod("web")
	b.cloud.server.Close()
	resp, body := b.send("PATCH", podPath("web")+"/status", []byte(`{"status":{"message":"x"}}`), "Content-Type", merge)
	var p corev1.Pod
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &p) != nil || p.Status.Message != "x" ||
		b.writes.queue.Len() != 1 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, _ := b.send("DELETE", podPath("web"), nil); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("a deletion: %d", resp.StatusCode)
	}
}
