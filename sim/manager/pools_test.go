package manager

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

// poolWorld is a world with a client that knows NodePools.
type poolWorld struct {
	*world
	t     *testing.T
	typed client.Client
}

func (w poolWorld) pool(name string) *nodepool.NodePool {
	w.t.Helper()
	p := &nodepool.NodePool{}
	if err := w.typed.Get(w.t.Context(), types.NamespacedName{Name: name}, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// leads are the nodes that a pool's status names, and what its Endpoints and slices say, which have to be the same.
func (w poolWorld) leads(name string) (nodes string, agree bool) {
	w.t.Helper()
	p := w.pool(name)
	said := []string{}
	for _, l := range p.Status.LeaderEndpoints {
		said = append(said, l.NodeName+"/"+l.Address)
	}
	key := types.NamespacedName{Namespace: contract.ManagerNamespace, Name: "leader-hub-" + name}
	var service corev1.Service
	var endpoints corev1.Endpoints
	var slices discoveryv1.EndpointSliceList
	if w.typed.Get(w.t.Context(), key, &service) != nil || w.typed.Get(w.t.Context(), key, &endpoints) != nil {
		return strings.Join(said, " "), false
	}
	if err := w.typed.List(w.t.Context(), &slices, client.InNamespace(key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: key.Name}); err != nil {
		w.t.Fatal(err)
	}
	there, sliced := []string{}, []string{}
	for _, s := range endpoints.Subsets {
		for _, a := range s.Addresses {
			there = append(there, ptr.Deref(a.NodeName, "?")+"/"+a.IP)
		}
	}
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			sliced = append(sliced, ptr.Deref(e.NodeName, "?")+"/"+e.Addresses[0])
		}
	}
	nodes = strings.Join(said, " ")
	return nodes, nodes == strings.Join(there, " ") && nodes == strings.Join(sliced, " ")
}

func (w poolWorld) led(what, pool string, holds func(nodes string) bool) {
	w.t.Helper()
	w.eventually(w.t, what, func() bool { nodes, agree := w.leads(pool); return agree && holds(nodes) })
}

// setReady lets the node lifecycle controller, which does not run here, say how a node is.
func (w poolWorld) setReady(name string, ready corev1.ConditionStatus) {
	w.t.Helper()
	n := w.node(w.t, name)
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			n.Status.Conditions[i].Status = ready
		}
	}
	if _, err := w.client.CoreV1().Nodes().UpdateStatus(w.t.Context(), n, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// testPools: a NodePool gets its members, its leader hubs and leader-hub-<pool> (seed 003), which is put right when somebody changes it. What belongs to
// others is not touched.
func testPools(t *testing.T, w0 *world) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, nodepool.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	typed, err := client.New(w0.cloud.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := poolWorld{w0, t, typed}
	w.refusesBadPools()
	for name, address := range map[string]string{"p-1": "10.1.0.1", "p-2": "10.1.0.2", "p-3": "10.1.0.3"} {
		w.nodeAt(t, "quay", name, address)
		w.speak(false, name)
	}
	// As OpenYurt writes one, by fields and values.
	quay := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "quay"}}
	quay.Spec = nodepool.Spec{
		Type: nodepool.Edge, InterConnectivity: true, EnableLeaderElection: true, LeaderElectionStrategy: nodepool.Random, LeaderReplicas: 2,
		PoolScopeMetadata: []metav1.GroupVersionResource{{Version: "v1", Resource: "services"}, {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}},
	}
	if err := w.typed.Create(t.Context(), quay); err != nil {
		t.Fatal(err)
	}
	w.led("a pool has two leaders", "quay", func(nodes string) bool { return len(strings.Fields(nodes)) == 2 })
	p := w.pool("quay")
	if p.Status.ReadyNodeNum != 3 || p.Status.UnreadyNodeNum != 0 || strings.Join(p.Status.Nodes, " ") != "p-1 p-2 p-3" || p.Status.LeaderNum != 2 ||
		p.Status.LeaderLastElectedTime == nil || !meta.IsStatusConditionTrue(p.Status.Conditions, nodepool.LeaderReady) {
		t.Errorf("status %+v", p.Status)
	}
	w.eventually(t, "it says that leader-hub-quay is there", func() bool {
		return meta.IsStatusConditionTrue(w.pool("quay").Status.Conditions, nodepool.LeaderHubSynced)
	})

	first := p.Status.LeaderEndpoints[0].NodeName
	w.setReady(first, corev1.ConditionUnknown)
	w.led("another leads for one that is lost", "quay", func(nodes string) bool {
		return len(strings.Fields(nodes)) == 2 && !strings.Contains(nodes, first+"/")
	})
	before, _ := w.leads("quay")
	w.setReady(first, corev1.ConditionTrue)
	w.eventually(t, "it is back", func() bool { return w.pool("quay").Status.ReadyNodeNum == 3 })
	if now, _ := w.leads("quay"); now != before {
		t.Errorf("who comes back takes the lead: %s, before %s", now, before)
	}
	w.hush(p.Status.Nodes...)
	w.eventually(t, "nobody of the pool is heard", func() bool {
		c := meta.FindStatusCondition(w.pool("quay").Status.Conditions, nodepool.LeaderReady)
		return c.Status == metav1.ConditionUnknown && c.Reason == "PoolSilent"
	})
	for _, n := range p.Status.Nodes { // one after the other, as the node lifecycle controller does
		w.setReady(n, corev1.ConditionUnknown)
	}
	w.eventually(t, "the whole pool is lost", func() bool { return w.pool("quay").Status.ReadyNodeNum == 0 })
	if now, agree := w.leads("quay"); now != before || !agree {
		t.Errorf("a pool that is cut off has other leaders: %s, before %s", now, before)
	}
	w.speak(false, p.Status.Nodes...)
	for _, n := range p.Status.Nodes {
		w.setReady(n, corev1.ConditionTrue)
	}
	w.tampered(before)
	w.taken()
	move := []byte(`{"metadata":{"labels":{"` + contract.NodePoolLabel + `":null}}}`)
	for _, n := range []string{"p-1", "p-2", "p-3"} {
		if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), n, types.MergePatchType, move, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.led("a pool without nodes has no leader", "quay", func(nodes string) bool { return nodes == "" })
	w.hush("p-1", "p-2", "p-3")
}

// refusesBadPools: what a pool cannot be is refused with the field and the reason.
func (w poolWorld) refusesBadPools() {
	for what, c := range map[string]struct {
		spec nodepool.Spec
		says string
	}{
		"a type":     {nodepool.Spec{Type: "edge"}, "spec.type"},
		"a strategy": {nodepool.Spec{LeaderElectionStrategy: "first"}, "spec.leaderElectionStrategy"},
		"a network":  {nodepool.Spec{Type: nodepool.Cloud, HostNetwork: true}, "hostNetwork is for pools of type Edge"},
	} {
		err := w.typed.Create(w.t.Context(), &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Spec: c.spec})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.says) {
			w.t.Errorf("%s: %v", what, err)
		}
	}
	fixed := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}
	if err := w.typed.Create(w.t.Context(), fixed); err != nil || fixed.Spec.Type != nodepool.Edge {
		w.t.Errorf("an empty pool: %v, type %q", err, fixed.Spec.Type)
	}
	for what, change := range map[string]string{"interConnectivity": `{"interConnectivity":true}`, "type": `{"type":"Cloud"}`, "hostNetwork": `{"hostNetwork":true}`} {
		err := w.typed.Patch(w.t.Context(), fixed.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+change+`}`)))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), what+" cannot be changed") {
			w.t.Errorf("%s is changed: %v", what, err)
		}
	}
	if err := w.typed.Delete(w.t.Context(), fixed); err != nil {
		w.t.Error(err)
	}
}

// tampered: whatever somebody does to leader-hub-quay, it comes back as it was.
func (w poolWorld) tampered(leaders string) {
	same := func(nodes string) bool { return nodes == leaders }
	w.led("all is as before", "quay", same)
	key := metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: "leader-hub-quay"}
	all := map[string]client.Object{
		"Service": &corev1.Service{ObjectMeta: key}, "Endpoints": &corev1.Endpoints{ObjectMeta: key}, "EndpointSlice": &discoveryv1.EndpointSlice{ObjectMeta: key},
	}
	for kind, o := range all {
		if err := w.typed.Delete(w.t.Context(), o); err != nil {
			w.t.Errorf("%s: %v", kind, err)
		}
		w.led(kind+" that was deleted comes back", "quay", same)
	}
	for kind, patch := range map[string]string{
		"Endpoints":     `{"subsets":[{"addresses":[{"ip":"10.6.6.6"}],"ports":[{"name":"pool","port":10269}]}],"metadata":{"annotations":{"example.com/theirs":"stays","openyurt.io/interconnectivity":"false"}}}`,
		"EndpointSlice": `{"endpoints":[{"addresses":["10.6.6.6"]}]}`,
	} {
		o := all[kind]
		if err := w.typed.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			w.t.Errorf("%s: %v", kind, err)
		}
		w.led(kind+" that was edited is put right", "quay", same)
	}
	service := all["Service"].(*corev1.Service)
	if err := w.typed.Patch(w.t.Context(), service, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ports":[{"name":"pool","port":1}]}}`))); err != nil {
		w.t.Error(err)
	}
	w.eventually(w.t, "the port of the Service is put right", func() bool {
		s := &corev1.Service{}
		err := w.typed.Get(w.t.Context(), client.ObjectKeyFromObject(service), s)
		return err == nil && len(s.Spec.Ports) == 1 && s.Spec.Ports[0].Port == contract.HubPoolPort
	})
	w.eventually(w.t, "what others wrote beside stays, and what is Weir's is put right", func() bool {
		e := &corev1.Endpoints{}
		err := w.typed.Get(w.t.Context(), client.ObjectKeyFromObject(all["Endpoints"]), e)
		return err == nil && e.Annotations["example.com/theirs"] == "stays" && e.Annotations[contract.LeaderHubConnectivity] == "true" && e.Labels[discoveryv1.LabelSkipMirror] == "true"
	})
}

// taken: an object of somebody else with the name of Weir's is left alone, and the pool says so. One of Weir's that cannot be changed is made anew.
func (w poolWorld) taken() {
	w.nodeAt(w.t, "jetty", "j-1", "10.2.0.1")
	key := metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: "leader-hub-jetty"}
	theirs := []client.Object{
		&corev1.Service{ObjectMeta: key, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.Endpoints{ObjectMeta: key}, &discoveryv1.EndpointSlice{ObjectMeta: key, AddressType: discoveryv1.AddressTypeIPv6},
	}
	for _, o := range theirs {
		if err := w.typed.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
	jetty := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "jetty"}, Spec: nodepool.Spec{InterConnectivity: true, EnableLeaderElection: true}}
	if err := w.typed.Create(w.t.Context(), jetty); err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range []string{"Service", "Endpoints", "EndpointSlice"} {
		w.eventually(w.t, "the pool says that its "+kind+" is somebody else's", func() bool {
			c := meta.FindStatusCondition(w.pool("jetty").Status.Conditions, nodepool.LeaderHubSynced)
			return c != nil && c.Status == metav1.ConditionFalse && c.Reason == "TakenName" && strings.Contains(c.Message, kind+" kube-system/leader-hub-jetty is not")
		})
	}
	given := []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"weir-manager","apps.openyurt.io/nodepool":"jetty","kubernetes.io/service-name":"leader-hub-jetty"}}}`)
	for _, o := range theirs {
		if err := w.typed.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, given)); err != nil {
			w.t.Fatal(err)
		}
	}
	w.led("what was given to weir-manager becomes as it should be", "jetty", func(nodes string) bool { return nodes == "j-1/10.2.0.1" })
	w.eventually(w.t, "it has no address", func() bool {
		s := &corev1.Service{}
		err := w.typed.Get(w.t.Context(), client.ObjectKeyFromObject(theirs[0]), s)
		return err == nil && s.Spec.ClusterIP == corev1.ClusterIPNone && len(s.Spec.Selector) == 0
	})
	// What a stolen token of weir-manager may write in kube-system: nothing but these.
	thief := w.as(managerUser)
	try := func(what string, err error) {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "weir-leader-hubs") {
			w.t.Errorf("%s: want it denied by weir-leader-hubs, got %v", what, err)
		}
	}
	ctx, dry := context.WithoutCancel(w.t.Context()), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	mine := map[string]string{"app.kubernetes.io/managed-by": "weir-manager"}
	_, err := thief.CoreV1().Services(contract.ManagerNamespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-dns", Labels: mine}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 53}}},
	}, dry)
	try("a Service kube-dns", err)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "leader-hub-x", Labels: map[string]string{
		"app.kubernetes.io/managed-by": "weir-manager", discoveryv1.LabelServiceName: "kube-dns",
	}}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.6.6.6"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}}}
	_, err = thief.DiscoveryV1().EndpointSlices(contract.ManagerNamespace).Create(ctx, slice, dry)
	try("a slice of kube-dns", err)
	slice.Labels[discoveryv1.LabelServiceName] = "leader-hub-x"
	if _, err = thief.DiscoveryV1().EndpointSlices(contract.ManagerNamespace).Create(ctx, slice, dry); err != nil {
		w.t.Errorf("a slice of its own: %v", err)
	}
	if err := w.typed.Delete(w.t.Context(), jetty); err != nil {
		w.t.Error(err)
	}
}
