package writes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/request"
)

// cniNode is the Node after its CNI has written to it.
func cniNode() *corev1.Node {
	n := testNode()
	n.Annotations = map[string]string{
		"flannel.alpha.coreos.com/backend-data": `{"VNI":1,"VtepMAC":"12:c6:65:89:b4:e3"}`,
		"flannel.alpha.coreos.com/public-ip":    "10.0.0.1",
	}
	n.Spec.PodCIDR = "10.244.1.0/24"
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "FlannelIsUp",
		Message: "Flannel is running on this node", LastHeartbeatTime: metav1.Unix(1e9, 0),
		LastTransitionTime: metav1.Unix(1e9, 0),
	})
	return n
}

const networkUp = `{"status":{"conditions":[{"type":"NetworkUnavailable","status":%q,` +
	`"lastHeartbeatTime":"2026-11-28T12:00:00Z","lastTransitionTime":"2026-11-28T12:00:00Z",` +
	`"reason":%q,"message":"Flannel is running on this node"}]}}`

// TestUnchanged: what another client of the node writes to the Node is answered if it changes nothing, and only for
// whom the cloud lets get the Node. Nothing of it waits, and nothing reaches the cloud.
func TestUnchanged(t *testing.T) {
	const node, good = "/api/v1/nodes/" + nodeName, "Bearer of-flannel"
	b := newBed(t, clock.RealClock{}, func(c *Config) {
		c.MayGet = func(h http.Header) bool { return h.Get("Authorization") == good }
	})
	b.know(nodeKind(), nodes(), cniNode())
	stored, err := b.cloud.get(node).bytes()
	check(t, err)
	put := func(change func(*corev1.Node)) string {
		var n corev1.Node
		check(t, json.Unmarshal(stored, &n))
		change(&n)
		body, err := json.Marshal(n)
		check(t, err)
		return string(body)
	}
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, taken := b.writes.Take(w, req, request.Parse(req), false, false); !taken {
			w.WriteHeader(http.StatusTeapot) // it is the cloud's to answer
		}
	}))
	defer hub.Close()
	same := func(*corev1.Node) {}
	status := node + "/status"
	for _, c := range []struct {
		what, method, uri, media, body string
		code                           int
		header                         []string
	}{
		{"flannel's condition", "PATCH", status, strategic, fmt.Sprintf(networkUp, "False", "FlannelIsUp"), 200, nil},
		{"the condition as it is not", "PATCH", status, strategic, fmt.Sprintf(networkUp, "True", "FlannelIsUp"), 503, nil},
		{"another reason", "PATCH", status, strategic, fmt.Sprintf(networkUp, "False", "CalicoIsUp"), 503, nil},
		{
			"flannel's annotations", "PATCH", status, strategic,
			`{"metadata":{"annotations":{"flannel.alpha.coreos.com/public-ip":"10.0.0.1"}}}`, 200, nil,
		},
		{"nothing", "PATCH", status, strategic, `{}`, 200, nil},
		{"nothing, as a merge patch", "PATCH", node, merge, `{}`, 200, nil},
		{
			"another address", "PATCH", status, strategic,
			`{"metadata":{"annotations":{"flannel.alpha.coreos.com/public-ip":"10.0.0.2"}}}`, 503, nil,
		},
		{"a label", "PATCH", node, strategic, `{"metadata":{"labels":{"zone":"b"}}}`, 503, nil},
		{"a label as it is", "PATCH", node, strategic, `{"metadata":{"labels":{"zone":"a"}}}`, 200, nil},
		{"a taint", "PATCH", node, strategic, `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`, 503, nil},
		{"a field that nobody knows", "PATCH", status, merge, `{"status":{"new":1}}`, 503, nil},
		{"a condition less", "PATCH", status, merge, `{"status":{"conditions":[]}}`, 503, nil},
		{"Calico's update", "PUT", status, mediaJSON, put(same), 200, nil},
		{
			"a version of before", "PUT", status, mediaJSON, put(func(n *corev1.Node) { n.ResourceVersion = "1" }), 503, nil,
		},
		{"another Node", "PUT", status, mediaJSON, put(func(n *corev1.Node) { n.UID = "x" }), 503, nil},
		{
			"an address less", "PUT", status, mediaJSON,
			put(func(n *corev1.Node) { n.Status.Addresses = n.Status.Addresses[1:] }), 503, nil,
		},
		{"an owner", "PUT", status, mediaJSON, put(func(n *corev1.Node) { n.Finalizers = []string{"a"} }), 503, nil},
		{"the Node as a whole", "PUT", node, mediaJSON, put(same), 503, nil},
		{"another node", "PATCH", "/api/v1/nodes/edge-2/status", strategic, `{}`, 503, nil},
		{"no JSON", "PATCH", status, merge, `{`, 503, nil},
		{"a dry run", "PATCH", status + "?dryRun=All", merge, `{}`, 503, nil},
		{"a path that is not clean", "PATCH", "/" + status, merge, `{}`, 503, nil},
		{"in another name", "PATCH", status, merge, `{}`, 503, []string{"Impersonate-User", "eve"}},
		{"a body that is compressed", "PATCH", status, merge, `{}`, 503, []string{"Content-Encoding", "gzip"}},
		{"of one who may not get it", "PATCH", status, merge, `{}`, 503, []string{"Authorization", "Bearer of-eve"}},
		{"a token", "POST", "/api/v1/namespaces/default/serviceaccounts/sa/token", mediaJSON, `{}`, 503, nil},
	} {
		send := func(want int) {
			t.Helper()
			header := append([]string{"Content-Type", c.media, "Authorization", good}, c.header...)
			resp, body := request1(t, c.method, hub.URL+c.uri, []byte(c.body), header...)
			if resp.StatusCode != want {
				t.Errorf("%s: %d, want %d; %s", c.what, resp.StatusCode, want, body)
			}
			if want == http.StatusOK && !strings.Contains(string(body), "VtepMAC") {
				t.Errorf("%s is not answered with the Node: %s", c.what, body)
			}
		}
		b.set(member.CloudHere)
		send(http.StatusTeapot)
		b.set(member.CloudAway)
		send(c.code)
	}
	if n := b.writes.queue.Len(); n != 0 {
		t.Errorf("%d entries wait: %v", n, b.writes.queue.Entries()[0])
	}
	if n := len(b.cloud.written()); n != 0 {
		t.Errorf("%d writes reached the cloud", n)
	}

	// The kubelet writes; a relay shows the Node without that, and so does an update that was made from it.
	before := put(same)
	resp, body := b.send("PATCH", status, []byte(`{"status":{"nodeInfo":{"bootID":"of now"}}}`), "Content-Type", merge)
	if resp.StatusCode != http.StatusOK || b.writes.queue.Len() != 1 {
		t.Fatalf("the kubelet's own write: %d %s", resp.StatusCode, body)
	}
	for _, c := range []struct {
		what, method, media, body string
		code                      int
	}{
		{"as a relay shows it", "PUT", mediaJSON, before, 200},
		{"as the store shows it", "PUT", mediaJSON, string(body), 200},
		{"a patch back", "PATCH", merge, `{"status":{"nodeInfo":{"bootID":""}}}`, 503},
	} {
		resp, answer := request1(t, c.method, hub.URL+status, []byte(c.body), "Content-Type", c.media, "Authorization", good)
		if resp.StatusCode != c.code || c.code == http.StatusOK && !strings.Contains(string(answer), "of now") {
			t.Errorf("%s: %d, want %d with what waits; %s", c.what, resp.StatusCode, c.code, answer)
		}
	}
	if n := b.writes.queue.Len(); n != 1 {
		t.Errorf("%d entries wait, want the kubelet's", n)
	}
}
