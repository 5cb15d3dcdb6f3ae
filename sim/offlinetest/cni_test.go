package offlinetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	ownNode   = "/api/v1/nodes/" + edge
	calicoAPI = "/apis/crd.projectcalico.org/v1/"
	ciliumAPI = "/apis/cilium.io/v2/"
	strategic = string(types.StrategicMergePatchType)
)

// cni is a program on the node that calls the API as a CNI does: by client-go, with the token of its pod.
type cni struct {
	*bed
	namespace string
	client    kubernetes.Interface
}

// cniAs makes a pod of this node with an account that may do what its manifest lets it, and a client in it. command is
// what its user agent begins with, and media the type of its bodies.
func (b *bed) cniAs(command, namespace, account, media string, rules ...rbacv1.PolicyRule) *cni {
	t, ctx, core := b.t, b.t.Context(), b.admin.CoreV1()
	t.Helper()
	_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(t, err)
	}
	meta := metav1.ObjectMeta{Name: account}
	_, err = core.ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	check(t, err)
	roles, role := b.admin.RbacV1(), metav1.ObjectMeta{Name: "cni-" + account} // the testbed has others without "cni-"
	_, err = roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: role, Rules: rules}, metav1.CreateOptions{})
	check(t, err)
	_, err = roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: role, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}, metav1.CreateOptions{})
	check(t, err)
	pod, err := core.Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: meta, Spec: corev1.PodSpec{
			NodeName: edge, HostNetwork: true, ServiceAccountName: account, AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/image:1"}},
		},
	}, metav1.CreateOptions{})
	check(t, err)
	token, err := core.ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
		}},
	}, metav1.CreateOptions{})
	check(t, err)
	return &cni{b, namespace, b.cniClient(command, media, token.Status.Token)}
}

func (b *bed) cniClient(command, media, token string) kubernetes.Interface {
	c, err := kubernetes.NewForConfig(&rest.Config{
		Host: b.url, UserAgent: command + "/v0.0.0 (linux/amd64) kubernetes/$Format", BearerToken: token, QPS: -1,
		ContentConfig:   rest.ContentConfig{ContentType: media, AcceptContentTypes: media + ",application/json"},
		TLSClientConfig: rest.TLSClientConfig{CAData: b.ca},
	})
	check(b.t, err)
	return c
}

// asks sends a request once, without the retries of client-go, and returns the object of the answer.
func (c *cni) asks(what, method, uri, media, body string, want int) map[string]any {
	c.t.Helper()
	req := c.client.CoreV1().RESTClient().Verb(method).RequestURI(uri).MaxRetries(0).
		SetHeader("Accept", runtime.ContentTypeJSON)
	if media != "" {
		req = req.SetHeader("Content-Type", media).Body([]byte(body))
	}
	var code int
	result := req.Do(c.t.Context()).StatusCode(&code)
	raw, _ := result.Raw()
	said := string(raw)
	if err := result.Error(); err != nil {
		said = err.Error()
	}
	c.t.Logf("%s: %s %s: %d %.150s", what, method, uri, code, said)
	if code != want || code == http.StatusServiceUnavailable && !strings.Contains(said, "the cloud is away") {
		c.t.Errorf("%s: %s %s: %d, want %d; %s", what, method, uri, code, want, said)
	}
	var o map[string]any
	_ = json.Unmarshal(raw, &o)
	return o
}

func (c *cni) gets(what, uri string, want int) map[string]any {
	c.t.Helper()
	return c.asks(what, http.MethodGet, uri, "", "", want)
}

// condition is what flannel and Calico send when they have started (pkg/subnet/kube/kube.go of flannel v0.28.9,
// node/pkg/lifecycle/utils/utils.go of Calico v3.34.0-0.dev).
func (c *cni) condition(name, status string, want int) {
	c.t.Helper()
	now := metav1.Now()
	raw, err := json.Marshal([]corev1.NodeCondition{{
		Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionStatus(status), Reason: name + "IsUp",
		Message: name + " is running on this node", LastTransitionTime: now, LastHeartbeatTime: now,
	}})
	check(c.t, err)
	c.asks("NetworkUnavailable="+status, http.MethodPatch, ownNode+"/status", strategic,
		fmt.Sprintf(`{"status":{"conditions":%s}}`, raw), want)
}

// informs reads collections as informers do, until each is whole.
func (c *cni) informs(each ...func(informers.SharedInformerFactory) cache.SharedIndexInformer) {
	c.t.Helper()
	f := informers.NewSharedInformerFactory(c.client, 0)
	for i, of := range each {
		inf := of(f)
		f.Start(c.t.Context().Done())
		eventually(c.t, fmt.Sprintf("informer %d to sync", i), inf.HasSynced)
	}
}

func allNodes(f informers.SharedInformerFactory) cache.SharedIndexInformer {
	return f.Core().V1().Nodes().Informer()
}

// custom makes custom resources of a whole cluster, each with one object, whose name is given behind "/".
func (b *bed) custom(api string, named ...string) {
	b.t.Helper()
	group := strings.Split(api, "/")[2]
	version := strings.Split(api, "/")[3]
	client := b.admin.Discovery().RESTClient()
	post := func(path, body string) error {
		return client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).
			Do(b.t.Context()).Error()
	}
	for _, n := range named {
		plural, name, _ := strings.Cut(n, "/")
		kind := strings.ToUpper(plural[:1]) + plural[1:]
		check(b.t, post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[2]s"},
			"spec":{"group":%[2]q,"scope":"Cluster","names":{"plural":%[1]q,"kind":%[3]q},"versions":[{"name":%[4]q,
			"served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
			"x-kubernetes-preserve-unknown-fields":true}}}}}]}}`, plural, group, kind, version)))
		object := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":%q},"spec":{"of":%q}}`, group, version,
			kind, name, edge)
		eventually(b.t, "the cloud to serve "+plural, func() bool { return post(api+plural, object) == nil })
	}
}

// reboot cuts the link, when the kubelet sees a Node that has this, and kills the hub. It waits until the hub sees that
// the cloud is away: until then a write of a pod waits for a connection.
func (b *bed) reboot(a *agent, has string) {
	b.t.Helper()
	eventually(b.t, "the kubelet to see its Node with "+has, func() bool {
		seen, err := json.Marshal(a.informers["nodes metadata.name="+edge].GetStore().List())
		return err == nil && strings.Contains(string(seen), has)
	})
	b.written()
	b.cut()
	b.restart()
	eventually(b.t, "the hub to see that the cloud is away", func() bool {
		return b.metric("weir_offline_phase", `phase="apart"`) == 1
	})
}

// cniBed is a bed with a kubelet and a pod, where the Node has addresses for pods.
func cniBed(t *testing.T) (*bed, *agent) {
	b := newBed(t, unread())
	b.fill(1, 1)
	_, err := b.admin.CoreV1().Nodes().Patch(t.Context(), edge, types.MergePatchType,
		[]byte(`{"spec":{"podCIDR":"10.244.1.0/24","podCIDRs":["10.244.1.0/24"]}}`), metav1.PatchOptions{})
	check(t, err)
	return b, b.startAgent("kubelet", runtime.ContentTypeProtobuf, 1)
}

func rule(group, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: strings.Split(resources, " "), Verbs: strings.Split(verbs, " "),
	}
}

// TestFlannel: flannel starts without the cloud on a node that was restarted. Its requests are those of flannel v0.28.9
// (pkg/subnet/kube/kube.go, pkg/backend/vxlan/vxlan.go). It ends if it cannot write an address that has changed. The
// cloud gets nothing of what it says once more.
func TestFlannel(t *testing.T) {
	b, kubelet := cniBed(t)
	c := b.cniAs("flanneld", "kube-flannel", "flannel", runtime.ContentTypeJSON, rule("", "pods", "get"),
		rule("", "nodes", "get list watch"), rule("", "nodes/status", "patch"))
	app := b.cniAs("app", "default", "app", runtime.ContentTypeJSON, rule("", "nodes/status", "patch"))
	kubelet.synced()
	annotations := func(ip string) string {
		return `{"metadata":{"annotations":{"flannel.alpha.coreos.com/backend-data":` +
			`"{\"VNI\":1,\"VtepMAC\":\"12:c6:65:89:b4:e3\"}","flannel.alpha.coreos.com/backend-type":"vxlan",` +
			`"flannel.alpha.coreos.com/kube-subnet-manager":"true","flannel.alpha.coreos.com/public-ip":"` + ip + `"}}}`
	}
	reads := func() {
		t.Helper()
		c.gets("its pod", "/api/v1/namespaces/kube-flannel/pods/flannel", 200)
		c.informs(allNodes)
		c.gets("its Node", ownNode, 200)
	}
	reads()
	c.asks("its annotations", "PATCH", ownNode+"/status", strategic, annotations("10.0.0.1"), 200)
	c.condition("Flannel", "False", 200)
	app.asks("of one who may not get it", "PATCH", ownNode+"/status", strategic, `{}`, 200)
	before, err := b.admin.CoreV1().Nodes().Get(t.Context(), edge, metav1.GetOptions{})
	check(t, err)
	b.reboot(kubelet, "FlannelIsUp")

	reads() // what it wrote is there, so it writes no annotations
	c.asks("its annotations again", "PATCH", ownNode+"/status", strategic, annotations("10.0.0.1"), 200)
	c.asks("public-ip-overwrite", "PATCH", ownNode+"/status", strategic, `{}`, 200)
	c.condition("Flannel", "False", 200)
	c.asks("an address that has changed", "PATCH", ownNode+"/status", strategic, annotations("10.0.0.2"), 503)
	c.condition("Flannel", "True", 503)
	if n := b.metric("weir_offline_writes_total", `outcome="unchanged"`); n != 3 {
		t.Errorf("%v writes that change nothing are counted, want 3", n)
	}
	stranger := &cni{b, "", b.cniClient("flanneld", runtime.ContentTypeJSON, "forged")}
	stranger.asks("of a stranger", "PATCH", ownNode+"/status", strategic, `{}`, 503)
	app.asks("of one who may not get it", "PATCH", ownNode+"/status", strategic, `{}`, 503)

	b.heal()
	after, err := b.admin.CoreV1().Nodes().Get(t.Context(), edge, metav1.GetOptions{})
	check(t, err)
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("the cloud's Node has changed: %v, before %v", after, before)
	}
}

// TestCalico: what calico-node and its plugin ask on a node that was restarted without the cloud (Calico v3.34.0-0.dev:
// node/pkg/lifecycle/startup, node/pkg/cni, libcalico-go/lib/backend/k8s, cni-plugin). Its init container gets no token
// and its plugin may write no address, so Calico does not come back. All else is answered.
func TestCalico(t *testing.T) {
	b, kubelet := cniBed(t)
	b.custom(calicoAPI, "ippools/default", "clusterinformations/default", "felixconfigurations/default",
		"bgpconfigurations/default", "ipamconfigs/default", "blockaffinities/edge-1-10-244-1-0-26",
		"ipamblocks/10-244-1-0-26", "ipamhandles/k8s-pod-network.1")
	const crd = "crd.projectcalico.org"
	node := b.cniAs("calico", "kube-system", "calico-node", runtime.ContentTypeProtobuf, rule(crd, "*", "*"),
		rule("", "nodes pods namespaces configmaps", "get list watch"), rule("", "nodes/status", "patch update"),
		rule("", "serviceaccounts/token", "create"))
	plugin := b.cniAs("calico", "kube-system", "calico-cni-plugin", runtime.ContentTypeJSON, rule(crd, "*", "*"),
		rule("", "nodes pods namespaces", "get"), rule("", "pods/status", "patch"))
	kubelet.synced()
	starts := func(read, write int) {
		t.Helper()
		node.asks("a token for the plugin", "POST", "/api/v1/namespaces/kube-system/serviceaccounts/calico-cni-plugin/token",
			"application/json", `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":{},`+
				`"spec":{"audiences":[],"expirationSeconds":86400,"boundObjectRef":null},`+
				`"status":{"token":"","expirationTimestamp":null}}`, write)
		node.gets("a Node that is none", "/api/v1/nodes/foo", 404)
		node.gets("affinities of before", calicoAPI+"blockaffinities?labelSelector=%21projectcalico.org%2FaffinityType", 200)
		node.gets("kubeadm's ConfigMap", "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", 404)
		node.gets("Rancher's ConfigMap", "/api/v1/namespaces/kube-system/configmaps/full-cluster-state", 404)
		own, err := node.client.CoreV1().Nodes().Get(t.Context(), edge, metav1.GetOptions{})
		check(t, err)
		if _, err := node.client.CoreV1().Nodes().UpdateStatus(t.Context(), own, metav1.UpdateOptions{}); err != nil {
			t.Errorf("its Node as it has read it: %v", err) // with AS or CALICO_K8S_NODE_REF
		}
		node.gets("pools", calicoAPI+"ippools", 200)
		for _, r := range []string{"clusterinformations", "felixconfigurations", "bgpconfigurations", "ipamconfigs"} {
			node.gets("what is there by default", calicoAPI+r+"/default", 200)
		}
		node.condition("Calico", "False", 200)

		plugin.gets("whether the datastore is ready", calicoAPI+"clusterinformations/default", 200)
		plugin.gets("the pod's namespace", "/api/v1/namespaces/default", 200)
		pod := plugin.gets("the pod", "/api/v1/namespaces/default/pods/pod-00", 200)
		block := plugin.gets("its block", calicoAPI+"ipamblocks/10-244-1-0-26", 200)
		block["spec"] = map[string]any{"allocations": []any{read}}
		body, err := json.Marshal(block)
		check(t, err)
		plugin.asks("an address", "PUT", calicoAPI+"ipamblocks/10-244-1-0-26", "application/json", string(body), read)
		plugin.asks("a handle", "POST", calicoAPI+"ipamhandles", "application/json", fmt.Sprintf(
			`{"apiVersion":"crd.projectcalico.org/v1","kind":"Ipamhandles","metadata":{"name":"of-%d"},"spec":{}}`, read), write)
		uid := pod["metadata"].(map[string]any)["uid"]
		plugin.asks("the pod's address", "PATCH", "/api/v1/namespaces/default/pods/pod-00/status", strategic, fmt.Sprintf(
			`{"metadata":{"annotations":{"cni.projectcalico.org/containerID":"%d",`+
				`"cni.projectcalico.org/podIP":"10.244.1.7/32","cni.projectcalico.org/podIPs":"10.244.1.7/32"},"uid":%q}}`,
			read, uid), read)
	}
	starts(200, 201)
	b.reboot(kubelet, "CalicoIsUp")
	starts(503, 503)
}
