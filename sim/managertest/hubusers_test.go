package managertest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/revocation"
	weirpki "github.com/weir-edge/weir/impl/pki"
)

// hubReads are what a hub's user may do, and hubHands some of what it may not: all that its node may, above all.
var (
	hubReads = []string{
		"GET /api/v1/endpoints", "GET /apis/discovery.k8s.io/v1/endpointslices",
		"GET /api/v1/endpoints?watch=1&timeoutSeconds=1",
		"GET /apis/discovery.k8s.io/v1/endpointslices?watch=1&timeoutSeconds=1", "GET /openid/v1/jwks", "GET /apis",
		"GET /api/v1/services", "GET /api/v1/namespaces", "GET /api/v1/nodes", "GET /apis/storage.k8s.io/v1/csidrivers",
		"GET /apis/node.k8s.io/v1/runtimeclasses", "GET /apis/networking.k8s.io/v1/servicecidrs",
		"GET /apis/networking.k8s.io/v1/networkpolicies",
		"GET /api/v1/namespaces/weir-pki/configmaps/pool-north",
	}
	hubHands = []string{
		"GET /api/v1/secrets", "GET /api/v1/namespaces/default/secrets/x",
		"GET /api/v1/namespaces/weir-pki/secrets/pool-north",
		"GET /api/v1/configmaps", "GET /api/v1/namespaces/weir-pki/configmaps",
		"GET /api/v1/namespaces/weir-pki/configmaps/roster-north",
		"GET /api/v1/namespaces/weir-pki/configmaps/pool-south", "GET /api/v1/namespaces/weir-pki/configmaps/denylist-south",
		"GET /api/v1/pods", "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dh-1",
		"GET /api/v1/pods?fieldSelector=spec.nodeName%3Dh-2",
		"GET /api/v1/nodes/h-1", "GET /api/v1/nodes/h-2", "GET /api/v1/namespaces/default/services/x",
		"GET /api/v1/namespaces/default/endpoints/x", "GET /apis/apps/v1/daemonsets", "GET /api/v1/persistentvolumes",
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/h-1",
		"DELETE /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/h-2",
		"POST /api/v1/namespaces/default/serviceaccounts/default/token",
		"POST /apis/certificates.k8s.io/v1/certificatesigningrequests",
		"GET /apis/certificates.k8s.io/v1/certificatesigningrequests",
		"DELETE /apis/discovery.k8s.io/v1/namespaces/default/endpointslices/x",
		"POST /api/v1/namespaces/default/events", "GET /apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		"GET /metrics",
	}
)

// code is what a request, "VERB /path", is answered.
func code(t *testing.T, c kubernetes.Interface, request string) int {
	t.Helper()
	verb, path, _ := strings.Cut(request, " ")
	got := 0
	c.Discovery().RESTClient().Verb(verb).RequestURI(path).Body([]byte(`{}`)).SetHeader(
		"Content-Type", "application/json").Do(t.Context()).StatusCode(&got)
	return got
}

// testHubUsers: the user of a hub may read what relays need and whom to trust, and nothing else. It may no more when
// its node leaves the pool or is deleted. Users of other pools, the former group of all hubs, and the node itself have
// none of it.
func testHubUsers(t *testing.T, w *world) {
	w.nodes(t, "north", "h-1", "h-2")
	w.nodes(t, "south", "s-1")
	user := func(pool, node string) kubernetes.Interface {
		return w.as(contract.HubUserPrefix+pool+":"+node, "system:authenticated")
	}
	hub, other := user("north", "h-1"), user("north", "h-2")
	const slices = "GET /apis/discovery.k8s.io/v1/endpointslices"
	reads := func(c kubernetes.Interface) bool { return code(t, c, slices) == http.StatusOK }
	send(t, w.as("system:node:h-1", "system:nodes", "system:authenticated"),
		ask(t, "north-pool", weirpki.Hub, weirpki.Subject{Pool: "north", Node: "h-1"}, newKey(t)))
	w.eventually(t, "hubs of both pools may read, and the pool has an authority", func() bool {
		return reads(hub) && reads(other) && reads(user("south", "s-1")) &&
			code(t, hub, hubReads[len(hubReads)-1]) == http.StatusOK
	})
	for _, r := range hubReads {
		if got := code(t, hub, r); got != http.StatusOK {
			t.Errorf("a hub: %s: %d", r, got)
		}
	}
	for _, r := range hubHands {
		if got := code(t, hub, r); got != http.StatusForbidden {
			t.Errorf("a hub: %s: %d", r, got)
		}
	}
	for who, c := range map[string]kubernetes.Interface{
		"a node's name in another pool": user("south", "h-1"), "another pool's node": user("north", "s-1"),
		"no pool":          user("", "h-1"),
		"the node itself":  w.as("system:node:h-1", "system:nodes", "system:authenticated"),
		"the former group": w.as("system:node:h-1", "system:nodes", contract.HubGroup, "system:authenticated"),
	} {
		if reads(c) {
			t.Errorf("%s lists slices", who)
		}
	}

	bindings := w.client.RbacV1().ClusterRoleBindings()
	if _, err := bindings.Patch(t.Context(), "weir:hub:north", types.MergePatchType, []byte(`{"subjects":[]}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "a binding that somebody emptied is put right", func() bool {
		b, err := bindings.Get(t.Context(), "weir:hub:north", metav1.GetOptions{})
		return err == nil && len(b.Subjects) == 2 && reads(hub)
	})
	if err := bindings.Delete(t.Context(), "weir:hub:north", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "one that somebody deleted is made again", func() bool {
		_, err := bindings.Get(t.Context(), "weir:hub:north", metav1.GetOptions{})
		return err == nil && reads(hub)
	})
	core := func(resources string) { // of the core group, an operator lets hubs read these
		patch := []byte(`[{"op":"replace","path":"/rules/0/resources","value":[` + resources + `]}]`)
		if _, err := w.client.RbacV1().ClusterRoles().Patch(context.Background(), revocation.HubRole, types.JSONPatchType,
			patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	core(`"endpoints"`)
	t.Cleanup(func() { core(`"endpoints","services","namespaces","nodes"`) })
	w.eventually(t, "a role that somebody cut to count", func() bool {
		return code(t, hub, "GET /api/v1/nodes") == http.StatusForbidden
	})
	const nodes = "GET /api/v1/nodes?labelSelector=" + contract.NodePoolLabel + "%3Dnorth"
	if _, err := bindings.Create(t.Context(), revocation.Binding(revocation.TopologyRole, "north", nil),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "a pool that asks for topology has it", func() bool { return code(t, hub, nodes) == http.StatusOK })
	if got := code(t, user("south", "s-1"), nodes); got != http.StatusForbidden {
		t.Errorf("a pool that has not asked for it: %d", got)
	}

	move := []byte(`{"metadata":{"labels":{"` + contract.NodePoolLabel + `":"south"}}}`)
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), "h-2", types.MergePatchType, move,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "a node that is moved reads as a hub of its new pool, and as one of its old no more", func() bool {
		return reads(user("south", "h-2")) && !reads(other) && code(t, other, nodes) == http.StatusForbidden
	})
	began := time.Now()
	if err := w.client.CoreV1().Nodes().Delete(t.Context(), "h-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "the hub of a node that is deleted reads nothing", func() bool {
		return !reads(hub) && code(t, hub, nodes) == http.StatusForbidden &&
			code(t, hub, hubReads[len(hubReads)-1]) == http.StatusForbidden
	})
	t.Logf("kube-apiserver refuses the hub of a deleted node after %v", time.Since(began).Round(time.Millisecond))
	if !reads(user("south", "s-1")) {
		t.Error("a hub beside it reads nothing")
	}
}

// testHubRequests: what a node may not ask for at kube-apiserver's own signer is denied, and the right request beside
// it approved.
func testHubRequests(t *testing.T, w *world) {
	w.nodes(t, "asking", "u-1", "u-2")
	node := w.as("system:node:u-1", "system:nodes", "system:authenticated")
	right := weirpki.Subject{Pool: "asking", Node: "u-1"}
	request := func(s weirpki.Subject) *certificatesv1.CertificateSigningRequest {
		return ask(t, "", weirpki.HubAtCloud, s, newKey(t))
	}
	decade, extra := request(right), request(right)
	decade.Spec.ExpirationSeconds = ptr.To[int32](10 * 365 * 24 * 3600)
	extra.Spec.Request = named(t, "weir:hub:asking:u-1", contract.HubGroup)
	for _, c := range []struct {
		name    string
		as      kubernetes.Interface
		request *certificatesv1.CertificateSigningRequest
		field   string // that is wrong; "": none
	}{
		{"hub-user", node, request(right), ""},
		{"hub-user-renewed", node, request(right), ""},
		{
			"hub-user-by-itself", w.as("weir:hub:asking:u-1", "system:bootstrappers", "system:authenticated"), request(right),
			"requester",
		},
		{"hub-user-of-another-pool", node, request(weirpki.Subject{Pool: "certified", Node: "u-1"}), "common name"},
		{"hub-user-of-another-node", node, request(weirpki.Subject{Pool: "asking", Node: "u-2"}), "requester"},
		{
			"hub-user-of-no-node", w.as("system:node:u-9", "system:nodes", "system:authenticated"),
			request(weirpki.Subject{Pool: "asking", Node: "u-9"}), "node",
		},
		{"hub-user-with-a-group", node, extra, "organization"},
		{"hub-user-for-ten-years", node, decade, "life"},
	} {
		c.request.Name = c.name
		send(t, c.as, c.request)
		want := certificatesv1.CertificateDenied
		if c.field == "" {
			want = certificatesv1.CertificateApproved
		}
		if _, message := w.outcome(t, c.name, want); c.field != "" && !strings.HasPrefix(message, c.field+": ") {
			t.Errorf("%s: %s", c.name, message)
		}
	}
	if b, err := w.client.RbacV1().ClusterRoleBindings().Get(t.Context(), "weir:hub:asking",
		metav1.GetOptions{}); apierrors.IsNotFound(err) || err != nil || len(b.Subjects) != 2 {
		t.Errorf("approved before it was granted: %v, %v", b, err)
	}
}
