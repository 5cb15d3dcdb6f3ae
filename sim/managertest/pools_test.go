package managertest

import (
	"context"
	"fmt"
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
	"github.com/weir-edge/weir/impl/pool"
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
	if err := w.typed.List(w.t.Context(), &slices, client.InNamespace(key.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: key.Name}); err != nil {
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

// typed is a client that knows NodePools and Pools.
func (w *world) typed(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme, nodepool.AddToScheme, pool.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	typed, err := client.New(w.cloud.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

// testPools: a NodePool gets its members, its leader hubs and leader-hub-<pool> (seed 003), which is put right when
// somebody changes it. What belongs to others is not touched.
func testPools(t *testing.T, w0 *world) {
	w := poolWorld{w0, t, w0.typed(t)}
	w.refusesBadPools()
	for name, address := range map[string]string{"p-1": "10.1.0.1", "p-2": "10.1.0.2", "p-3": "10.1.0.3"} {
		w.nodeAt(t, "quay", name, address)
		w.speak(false, name)
	}
	// As OpenYurt writes one, by fields and values.
	quay := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "quay"}}
	quay.Spec = nodepool.Spec{
		Type: nodepool.Edge, InterConnectivity: true, EnableLeaderElection: true, LeaderElectionStrategy: nodepool.Random,
		LeaderReplicas: 2,
		PoolScopeMetadata: []nodepool.Resource{
			{Version: "v1", Resource: "services"}, {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		},
	}
	if err := w.typed.Create(t.Context(), quay); err != nil {
		t.Fatal(err)
	}
	w.led("a pool has two leaders", "quay", func(nodes string) bool { return len(strings.Fields(nodes)) == 2 })
	p := w.pool("quay")
	if p.Status.ReadyNodeNum != 3 || p.Status.UnreadyNodeNum != 0 || strings.Join(p.Status.Nodes, " ") != "p-1 p-2 p-3" ||
		p.Status.LeaderNum != 2 ||
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
	w.modes()
	before, _ = w.leads("quay")
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
		if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), n, types.MergePatchType, move,
			metav1.PatchOptions{}); err != nil {
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
		"Secrets": {
			nodepool.Spec{PoolScopeMetadata: []nodepool.Resource{{Version: "v1", Resource: "secrets"}}},
			"Secrets are never shared",
		},
		"two versions": {nodepool.Spec{PoolScopeMetadata: []nodepool.Resource{
			{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
			{Group: "discovery.k8s.io", Version: "v1beta1", Resource: "endpointslices"},
		}}, "in one version only"},
		"a network": {nodepool.Spec{Type: nodepool.Cloud, HostNetwork: true}, "hostNetwork is for pools of type Edge"},
	} {
		err := w.typed.Create(w.t.Context(), &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Spec: c.spec})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.says) {
			w.t.Errorf("%s: %v", what, err)
		}
	}
	err := w.typed.Create(w.t.Context(), &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "Quay"}})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "lowercase RFC 1123") {
		w.t.Errorf("a pool whose name differs in case: %v", err)
	}
	for what, c := range map[string]struct {
		spec pool.Spec
		says string
	}{
		"a mode": {pool.Spec{Mode: "Both"}, "spec.mode"},
		"both": {
			pool.Spec{Coordinator: &pool.Coordinator{Image: "i", Servers: []string{"https://10.0.0.1:10270"}}},
			"image is for a coordinator that weir-manager runs",
		},
		"a server without TLS": {
			pool.Spec{Coordinator: &pool.Coordinator{Servers: []string{"http://10.0.0.1:10270"}}}, "spec.coordinator.servers",
		},
		"two servers": {
			pool.Spec{Coordinator: &pool.Coordinator{Servers: []string{"https://a:1", "https://b:1"}}}, "servers are 1 or 3",
		},
		"an action": {pool.Spec{WhenSilent: &pool.WhenSilent{Action: "Delete"}}, "spec.whenSilent.action"},
		"evicted when": {
			pool.Spec{WhenSilent: &pool.WhenSilent{Action: pool.Evict}}, "after belongs to the action Evict",
		},
		"kept when": {
			pool.Spec{WhenSilent: &pool.WhenSilent{Action: pool.Keep, After: "1h"}}, "after belongs to the action Evict",
		},
		"no duration": {
			pool.Spec{WhenSilent: &pool.WhenSilent{Action: pool.Evict, After: "soon"}}, "spec.whenSilent.after",
		},
		"a duration too long": {
			pool.Spec{WhenSilent: &pool.WhenSilent{Action: pool.Evict, After: "999999999h"}}, "spec.whenSilent.after",
		},
		"an allowance": {
			pool.Spec{Offline: &pool.Offline{CertificateAllowance: "long"}}, "spec.offline.certificateAllowance",
		},
		"a long allowance": {pool.Spec{Offline: &pool.Offline{CertificateAllowance: "2161h"}}, "2160h at most"},
		"a negative allowance": {
			pool.Spec{Offline: &pool.Offline{CertificateAllowance: "-1h"}}, "spec.offline.certificateAllowance",
		},
		"a sharing": {pool.Spec{Images: &pool.Images{Sharing: "Some"}}, "spec.images.sharing"},
		"a repository": {
			pool.Spec{Images: &pool.Images{Registries: []pool.ImageRegistry{
				{Host: "docker.io/library", Sharing: pool.SharingJudged},
			}}}, "spec.images.registries[0].host",
		},
		"a registry without a sharing": {
			pool.Spec{Images: &pool.Images{Registries: []pool.ImageRegistry{{Host: "docker.io"}}}},
			"spec.images.registries[0].sharing",
		},
		"a registry twice": {
			pool.Spec{Images: &pool.Images{Registries: []pool.ImageRegistry{
				{Host: "docker.io", Sharing: pool.SharingJudged}, {Host: "docker.io", Sharing: pool.SharingEnabled},
			}}}, "spec.images.registries[1]",
		},
		"many registries": {
			pool.Spec{Images: &pool.Images{Registries: make([]pool.ImageRegistry, 33)}}, "must have at most 32 items",
		},
		"a name to reach":     {pool.Spec{Reach: []pool.Reach{{CIDR: "edge-1"}}}, "spec.reach[0].cidr"},
		"an address to reach": {pool.Spec{Reach: []pool.Reach{{CIDR: "10.244.3.4"}}}, "the address of a network"},
		"an address in a network": {
			pool.Spec{Reach: []pool.Reach{{CIDR: "10.244.3.4/16"}}}, "the address of a network and its length",
		},
		"IPv4 in IPv6": {pool.Spec{Reach: []pool.Reach{{CIDR: "::ffff:10.0.0.0/104"}}}, "spec.reach[0].cidr"},
		"a network twice": {
			pool.Spec{Reach: []pool.Reach{{CIDR: "10.0.0.0/8"}, {CIDR: "10.0.0.0/8"}}}, "spec.reach[1]",
		},
		"no port": {
			pool.Spec{Reach: []pool.Reach{{CIDR: "10.0.0.0/8", Ports: []pool.ReachPort{{}}}}}, "spec.reach[0].ports[0].port",
		},
		"ports that end before they begin": {
			pool.Spec{Reach: []pool.Reach{{CIDR: "10.0.0.0/8", Ports: []pool.ReachPort{{Port: 9, EndPort: 8}}}}},
			"endPort is not before port",
		},
		"many ports":        {pool.Spec{Reach: everywhere(9, 16)}, "128 ports and ranges of ports at most"},
		"many ports of one": {pool.Spec{Reach: everywhere(1, 17)}, "must have at most 16 items"},
		"many networks":     {pool.Spec{Reach: everywhere(33, 0)}, "must have at most 32 items"},
		"a negative duration": {
			pool.Spec{WhenSilent: &pool.WhenSilent{Action: pool.Evict, After: "-1h"}}, "spec.whenSilent.after",
		},
	} {
		err := w.typed.Create(w.t.Context(), &pool.Pool{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Spec: c.spec})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.says) {
			w.t.Errorf("Pool, %s: %v", what, err)
		}
	}
	fixed := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}
	if err := w.typed.Create(w.t.Context(), fixed); err != nil || fixed.Spec.Type != nodepool.Edge {
		w.t.Errorf("an empty pool: %v, type %q", err, fixed.Spec.Type)
	}
	for what, change := range map[string]string{
		"interConnectivity": `{"interConnectivity":true}`, "type": `{"type":"Cloud"}`, "hostNetwork": `{"hostNetwork":true}`,
	} {
		err := w.typed.Patch(w.t.Context(), fixed.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(`{"spec":`+change+`}`)))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), what+" cannot be changed") {
			w.t.Errorf("%s is changed: %v", what, err)
		}
	}
	if err := w.typed.Delete(w.t.Context(), fixed); err != nil {
		w.t.Error(err)
	}
}

// everywhere are networks with ports.
func everywhere(networks, ports int) (all []pool.Reach) {
	for i := range networks {
		r := pool.Reach{CIDR: fmt.Sprintf("10.%d.0.0/16", i)}
		for j := range int32(ports) { //nolint:gosec // a few
			r.Ports = append(r.Ports, pool.ReachPort{Port: 1 + j})
		}
		all = append(all, r)
	}
	return all
}

// own is the Pool of a name.
func (w poolWorld) own(name string) *pool.Pool {
	w.t.Helper()
	p := &pool.Pool{}
	if err := w.typed.Get(w.t.Context(), types.NamespacedName{Name: name}, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// told are the mode and the coordinators that hubs read.
func (w poolWorld) told(name string) (mode, coordinators string) {
	w.t.Helper()
	e := &corev1.Endpoints{}
	if err := w.typed.Get(w.t.Context(), types.NamespacedName{
		Namespace: contract.ManagerNamespace, Name: "leader-hub-" + name,
	}, e); err != nil {
		w.t.Fatal(err)
	}
	return e.Annotations[contract.LeaderHubMode], e.Annotations[contract.LeaderHubCoordinators]
}

// modes: hubs are told how their pool shares, and its Pool and its NodePool tell how it is.
func (w poolWorld) modes() {
	if mode, where := w.told("quay"); mode != "" || where != "" {
		w.t.Errorf("without a Pool hubs are told %q, %q", mode, where)
	}
	own := &pool.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: "quay"}, Spec: pool.Spec{
			Coordinator: &pool.Coordinator{Servers: []string{"https://10.1.0.9:10270"}},
		},
	}
	if err := w.typed.Create(w.t.Context(), own); err != nil || own.Spec.Mode != pool.ModeCoordinator {
		w.t.Fatalf("%v, mode %q", err, own.Spec.Mode)
	}
	tells := func(mode, where string) func() bool {
		return func() bool { m, c := w.told("quay"); return m == mode && c == where }
	}
	w.eventually(w.t, "hubs are told of the coordinator", tells(contract.ModeCoordinator, "https://10.1.0.9:10270"))
	w.eventually(w.t, "the Pool tells how it is", func() bool {
		s := w.own("quay").Status
		return s.Mode == pool.ModeCoordinator && s.Members == 3 && s.Heard == 3 && s.CutOff == 0 && s.Leader == "" &&
			s.SilentSince == nil &&
			meta.IsStatusConditionTrue(s.Conditions, pool.ModeApplied) &&
			meta.IsStatusConditionTrue(s.Conditions, pool.Described) &&
			meta.IsStatusConditionTrue(s.Conditions, pool.Heard) && meta.IsStatusConditionTrue(s.Conditions, pool.ScopeAccepted)
	})
	w.eventually(w.t, "and the NodePool", func() bool {
		s := w.pool("quay").Status
		return s.Mode == pool.ModeCoordinator && ptr.Deref(s.HeardNodeNum, -1) == 3 && ptr.Deref(s.CutOffNodeNum, -1) == 0
	})
	w.speak(true, "p-1")
	w.eventually(w.t, "one is cut off", func() bool {
		s, n := w.own("quay").Status, w.pool("quay").Status
		return s.CutOff == 1 && s.Heard == 3 && ptr.Deref(n.CutOffNodeNum, -1) == 1 &&
			meta.FindStatusCondition(s.Conditions, pool.Heard).Reason == "SomeCutOff"
	})
	w.speak(false, "p-1")
	w.eventually(w.t, "it is back", func() bool { return w.own("quay").Status.CutOff == 0 })
	change := func(spec string) {
		w.t.Helper()
		if err := w.typed.Patch(w.t.Context(), own,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))); err != nil {
			w.t.Fatal(err)
		}
	}
	change(`{"mode":"LeaderHubs"}`)
	w.eventually(w.t, "hubs are told of leader hubs", tells(contract.ModeLeaderHubs, ""))
	w.eventually(w.t, "the Pool names them", func() bool {
		s, names := w.own("quay").Status, []string{}
		for _, l := range w.pool("quay").Status.LeaderEndpoints {
			names = append(names, l.NodeName)
		}
		return s.Mode == pool.ModeLeaderHubs && len(names) == 2 && s.Leader == strings.Join(names, ",") &&
			s.ObservedGeneration == w.own("quay").Generation
	})
	election := func(on string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"enableLeaderElection":`+on+`}}`))
		if err := w.typed.Patch(w.t.Context(), w.pool("quay"), patch); err != nil {
			w.t.Fatal(err)
		}
	}
	before, _ := w.leads("quay")
	election("false")
	w.eventually(w.t, "without leaders hubs are not sent to leaders",
		tells(contract.ModeCoordinator, "https://10.1.0.9:10270"))
	w.eventually(w.t, "the Pool says why", func() bool {
		c := meta.FindStatusCondition(w.own("quay").Status.Conditions, pool.ModeApplied)
		return c.Status == metav1.ConditionFalse && c.Reason == "NoLeaderElection"
	})
	election("true")
	w.eventually(w.t, "leaders again", tells(contract.ModeLeaderHubs, ""))
	w.led("the same lead", "quay", func(nodes string) bool {
		return len(strings.Fields(nodes)) == len(strings.Fields(before))
	})
	if err := w.typed.Delete(w.t.Context(), own); err != nil {
		w.t.Fatal(err)
	}
	w.eventually(w.t, "without a Pool hubs go by their flags", tells("", ""))

	alone := &pool.Pool{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}}
	if err := w.typed.Create(w.t.Context(), alone); err != nil {
		w.t.Fatal(err)
	}
	w.eventually(w.t, "a Pool without a NodePool says so", func() bool {
		s := w.own("nowhere").Status
		d, m := meta.FindStatusCondition(s.Conditions, pool.Described),
			meta.FindStatusCondition(s.Conditions, pool.ModeApplied)
		return d != nil && d.Reason == "NoNodePool" && m != nil && m.Reason == "NoNodePool" && s.Mode == ""
	})
	if err := w.typed.Delete(w.t.Context(), alone); err != nil {
		w.t.Error(err)
	}
}

// tampered: whatever somebody does to leader-hub-quay, it comes back as it was.
func (w poolWorld) tampered(leaders string) {
	same := func(nodes string) bool { return nodes == leaders }
	w.led("all is as before", "quay", same)
	key := metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: "leader-hub-quay"}
	all := map[string]client.Object{
		"Service": &corev1.Service{ObjectMeta: key}, "Endpoints": &corev1.Endpoints{ObjectMeta: key},
		"EndpointSlice": &discoveryv1.EndpointSlice{ObjectMeta: key},
	}
	for kind, o := range all {
		if err := w.typed.Delete(w.t.Context(), o); err != nil {
			w.t.Errorf("%s: %v", kind, err)
		}
		w.led(kind+" that was deleted comes back", "quay", same)
	}
	for kind, patch := range map[string]string{
		"Endpoints": `{"subsets":[{"addresses":[{"ip":"10.6.6.6"}],"ports":[{"name":"pool","port":10269}]}],` +
			`"metadata":{"annotations":{"example.com/theirs":"stays","openyurt.io/interconnectivity":"false"}}}`,
		"EndpointSlice": `{"endpoints":[{"addresses":["10.6.6.6"]}]}`,
	} {
		o := all[kind]
		if err := w.typed.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			w.t.Errorf("%s: %v", kind, err)
		}
		w.led(kind+" that was edited is put right", "quay", same)
	}
	service := all["Service"].(*corev1.Service)
	if err := w.typed.Patch(w.t.Context(), service,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ports":[{"name":"pool","port":1}]}}`))); err != nil {
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
		return err == nil && e.Annotations["example.com/theirs"] == "stays" &&
			e.Annotations[contract.LeaderHubConnectivity] == "true" && e.Labels[discoveryv1.LabelSkipMirror] == "true"
	})
}

// taken: an object of somebody else with the name of Weir's is left alone, and the pool says so. One of Weir's that
// cannot be changed is made again.
func (w poolWorld) taken() {
	w.nodeAt(w.t, "jetty", "j-1", "10.2.0.1")
	key := metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: "leader-hub-jetty"}
	theirs := []client.Object{
		&corev1.Service{ObjectMeta: key, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.Endpoints{ObjectMeta: key}, &discoveryv1.EndpointSlice{
			ObjectMeta: key, AddressType: discoveryv1.AddressTypeIPv6,
		},
	}
	for _, o := range theirs {
		if err := w.typed.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
	jetty := &nodepool.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "jetty"}, Spec: nodepool.Spec{
			InterConnectivity: true, EnableLeaderElection: true,
		},
	}
	if err := w.typed.Create(w.t.Context(), jetty); err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range []string{"Service", "Endpoints", "EndpointSlice"} {
		w.eventually(w.t, "the pool says that its "+kind+" is somebody else's", func() bool {
			c := meta.FindStatusCondition(w.pool("jetty").Status.Conditions, nodepool.LeaderHubSynced)
			return c != nil && c.Status == metav1.ConditionFalse && c.Reason == "TakenName" &&
				strings.Contains(c.Message, kind+" kube-system/leader-hub-jetty is not")
		})
	}
	given := []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"weir-manager",` +
		`"apps.openyurt.io/nodepool":"jetty","kubernetes.io/service-name":"leader-hub-jetty"}}}`)
	for _, o := range theirs {
		if err := w.typed.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, given)); err != nil {
			w.t.Fatal(err)
		}
	}
	w.led("what was given to weir-manager becomes as it should be", "jetty",
		func(nodes string) bool { return nodes == "j-1/10.2.0.1" })
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
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-dns", Labels: mine,
		}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 53}}},
	}, dry)
	try("a Service kube-dns", err)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "leader-hub-x", Labels: map[string]string{
		"app.kubernetes.io/managed-by": "weir-manager", discoveryv1.LabelServiceName: "kube-dns",
	}}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{
		{Addresses: []string{"10.6.6.6"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}},
	}}
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
