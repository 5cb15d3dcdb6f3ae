package offlinetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// TestCilium: cilium-agent may not write its CiliumNode, with the machine's new boot ID, and ends; all that it reads is
// answered. Its requests are those of pkg/nodediscovery, pkg/k8s/identitybackend and pkg/endpointmanager.
func TestCilium(t *testing.T) {
	b, kubelet := cniBed(t)
	b.custom(ciliumAPI, "ciliumnodes/"+edge, "ciliumidentities/1234", "ciliumendpoints/pod-00")
	const crd = "cilium.io"
	c := b.cniAs("cilium-agent", "kube-system", "cilium", runtime.ContentTypeJSON, rule(crd, "*", "*"),
		rule("", "nodes pods namespaces services", "get list watch"), rule("", "nodes/status", "patch"))
	kubelet.synced()
	starts := func(boot string, write, create int) {
		t.Helper()
		c.gets("whether the API is there", "/api/v1/namespaces/kube-system", 200)
		c.informs(allNodes, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Pods().Informer()
		})
		own := c.gets("its CiliumNode", ciliumAPI+"ciliumnodes/"+edge, 200)
		own["spec"].(map[string]any)["bootid"] = boot
		body, err := json.Marshal(own)
		check(t, err)
		c.asks("its CiliumNode", "PUT", ciliumAPI+"ciliumnodes/"+edge, "application/json", string(body), write)
		c.gets("identities", ciliumAPI+"ciliumidentities", 200)
		c.asks("a new identity", "POST", ciliumAPI+"ciliumidentities", "application/json", fmt.Sprintf(
			`{"apiVersion":"cilium.io/v2","kind":"Ciliumidentities","metadata":{"name":"%d"},"spec":{}}`, write), create)
		c.gets("an endpoint", ciliumAPI+"ciliumendpoints/pod-00?resourceVersion=0", 200)
		c.asks("its status", "PATCH", ciliumAPI+"ciliumendpoints/pod-00", "application/json-patch+json",
			fmt.Sprintf(`[{"op":"replace","path":"/spec","value":{"of":%q}}]`, boot), write)
		c.asks("the Node's annotations", "PATCH", ownNode+"/status", strategic,
			`{"metadata":{"annotations":{"network.cilium.io/ipv4-cilium-host":"10.244.1.1"}}}`, 200)
	}
	starts("first", 200, 201)
	b.reboot(kubelet, "ipv4-cilium-host")
	starts("second", 503, 503)
}

// TestKindnet: kindnet reads, and writes nothing (images/kindnetd/cmd/kindnetd/main.go of kubernetes-sigs/kind).
func TestKindnet(t *testing.T) {
	b, kubelet := cniBed(t)
	c := b.cniAs("kindnetd", "kube-system", "kindnet", runtime.ContentTypeProtobuf,
		rule("", "nodes pods namespaces", "list watch"), rule("networking.k8s.io", "networkpolicies", "list watch"))
	kubelet.synced()
	starts := func() {
		t.Helper()
		c.informs(allNodes, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Pods().Informer()
		}, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Namespaces().Informer()
		}, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Networking().V1().NetworkPolicies().Informer()
		})
	}
	starts()
	b.reboot(kubelet, "")
	starts()
}

// TestElections: without the cloud nobody becomes or stays leader by a Lease: the other side may grant it, too.
func TestElections(t *testing.T) {
	b, kubelet := cniBed(t)
	c := b.cniAs("app", "default", "app", runtime.ContentTypeProtobuf, rule("coordination.k8s.io", "leases", "*"))
	kubelet.synced()
	leases := c.client.CoordinationV1().Leases("default")
	now := metav1.NewMicroTime(time.Unix(1e9, 0))
	holder, seconds := "app-1", int32(15)
	l, err := leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
		},
	}, metav1.CreateOptions{})
	check(t, err)
	const path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	c.gets("the Lease", path+"/app", 200)
	b.reboot(kubelet, "")
	c.gets("the Lease", path+"/app", 200)
	l.APIVersion, l.Kind = "coordination.k8s.io/v1", "Lease"
	l.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(time.Minute)}
	body, err := json.Marshal(l)
	check(t, err)
	c.asks("a renewal", "PUT", path+"/app", "application/json", string(body), 503)
	c.asks("a candidate", "POST", path, "application/json", strings.ReplaceAll(string(body), `"app"`, `"other"`), 503)
}
