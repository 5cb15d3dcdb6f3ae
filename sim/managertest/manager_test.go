package managertest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager"
)

// TestManager starts one real control plane and looks at weir-manager from all sides. Each part has pools of its own.
func TestManager(t *testing.T) {
	w := newWorld(t)
	t.Run("policies", func(t *testing.T) { testPolicies(t, w) })
	t.Run("the policies as simulated", func(t *testing.T) { testEmulation(t, w) })
	t.Run("membership", func(t *testing.T) { testMembership(t, w) })
	t.Run("rights of the manager", func(t *testing.T) { testManagerRights(t, w); testRenewals(t, w) })

	w.nodes(t, "cloud", "cloud-1")
	w.startBeating()
	w.speak(false, "cloud-1")
	approved, dir := approveTheWrong(t, w), t.TempDir()
	early := askEarly(t, w, dir)
	first := w.manage(t, nil)
	w.eventually(t, "nobody is kept who is heard", func() bool {
		_, kept := w.listed(t, contract.KeptNodes)["cloud-1"]
		return !kept
	})
	t.Run("delegated", func(t *testing.T) { testDelegated(t, w) })
	t.Run("forwarders", func(t *testing.T) { testForwarders(t, w) })
	t.Run("heard", func(t *testing.T) { testHeard(t, w) })
	t.Run("one heartbeat for a pool", func(t *testing.T) { testRollCall(t, w) })
	t.Run("far ahead", func(t *testing.T) { testAhead(t, w) })
	t.Run("certificates", func(t *testing.T) { testCertificates(t, w, approved) })
	t.Run("users of hubs", func(t *testing.T) { testHubUsers(t, w) })
	t.Run("requests of hubs", func(t *testing.T) { testHubRequests(t, w) })
	t.Run("revocation", func(t *testing.T) { testRevocation(t, w) })
	t.Run("rotation", func(t *testing.T) { testRotation(t, w) })
	t.Run("recall", func(t *testing.T) { first = testRecall(t, w, first) })
	t.Run("certificates that end", func(t *testing.T) { testEnds(t, w) })
	t.Run("taken back", func(t *testing.T) { testTakenBack(t, w) })
	t.Run("pools", func(t *testing.T) { testPools(t, w) })
	t.Run("poison", func(t *testing.T) { testPoison(t, w) })
	t.Run("coordinators", func(t *testing.T) { testCoordinators(t, w) })
	t.Run("installs", func(t *testing.T) { testInstalls(t, w) })
	t.Run("attributes", func(t *testing.T) { testAttributes(t, w) })
	t.Run("enrol", func(t *testing.T) { testEnrol(t, w, early, dir) })
	t.Run("a node that dies", func(t *testing.T) { testDead(t, w) })
	t.Run("keep, evict, return", func(t *testing.T) { testSilent(t, w) })
	t.Run("bound", func(t *testing.T) { testBound(t, w) })
	t.Run("clocks", func(t *testing.T) { testClocks(t, w) })
	t.Run("another leader", func(t *testing.T) { testLeaders(t, w, first) })
	t.Run("grants", func(t *testing.T) { testGrants(t, w) })
}

// testDelegated: taint, condition and Event come and go, and what others wrote stays.
func testDelegated(t *testing.T, w *world) {
	w.nodes(t, "delegated", "d-1", "d-2")
	w.speak(false, "d-1", "d-2")
	others := `{"spec":{"taints":[{"key":"example.com/theirs","effect":"NoExecute"}]}}`
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), "d-1", types.StrategicMergePatchType, []byte(others),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.speak(true, "d-1")
	w.eventually(t, "a delegated node is tainted, and its condition true", func() bool {
		n := w.node(t, "d-1")
		c := condition(n, contract.CutOffCondition)
		return taint(n, contract.CutOffTaint) != nil && c.Status == corev1.ConditionTrue &&
			c.Reason == "HeartbeatDelegated" && !c.LastTransitionTime.IsZero()
	})
	n := w.node(t, "d-1")
	if k := taint(n, contract.CutOffTaint); k.Effect != corev1.TaintEffectNoSchedule || k.Value != "true" ||
		k.TimeAdded == nil {
		t.Errorf("taint %+v", k)
	}
	if condition(n, corev1.NodeReady).Status != corev1.ConditionTrue || taint(n, "example.com/theirs") == nil {
		t.Errorf("what others wrote is not as it was: %+v %+v", n.Spec.Taints, n.Status.Conditions)
	}
	if taint(w.node(t, "d-2"), contract.CutOffTaint) != nil {
		t.Error("its peer is tainted too")
	}
	w.eventually(t, "an Event tells of it", func() bool {
		events, err := w.client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Regarding.Kind == "Node" && e.Regarding.Name == "d-1" && e.Reason == "HeartbeatDelegated" {
				return true
			}
		}
		return false
	})
	more := `{"spec":{"taints":[{"key":"example.com/more","effect":"NoSchedule"},{"key":"example.com/theirs",` +
		`"effect":"NoExecute"}]}}`
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), "d-1", types.MergePatchType, []byte(more),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "a taint that somebody else took away comes back",
		func() bool { return taint(w.node(t, "d-1"), contract.CutOffTaint) != nil })

	w.speak(false, "d-1")
	w.eventually(t, "all is undone when the node returns", func() bool {
		n := w.node(t, "d-1")
		return taint(n, contract.CutOffTaint) == nil && condition(n, contract.CutOffCondition).Status == corev1.ConditionFalse
	})
	if n := w.node(t, "d-1"); taint(n, "example.com/theirs") == nil || taint(n, "example.com/more") == nil {
		t.Errorf("taints of others are lost: %+v", n.Spec.Taints)
	}
}

// testForwarders: what a forwarder may do to Leases, by RBAC and by policy.
func testForwarders(t *testing.T, w *world) {
	w.nodes(t, "fleet", "f-1", "f-2")
	w.nodes(t, "other", "o-1")
	w.speak(false, "o-1")
	f := w.as(contract.ForwarderUserPrefix+"fleet:f-1", contract.ForwarderGroup, contract.ForwarderGroupPrefix+"fleet",
		"system:authenticated").
		CoordinationV1().Leases(contract.NodeLeaseNamespace)
	w.eventually(t, "the forwarder may read its nodes' Leases", func() bool {
		_, err := f.Get(t.Context(), "f-2", metav1.GetOptions{})
		return err == nil
	})
	patch := func(node, text string) error {
		_, err := f.Patch(t.Context(), node, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	bindings := w.client.RbacV1().RoleBindings(contract.NodeLeaseNamespace)
	name := contract.ForwarderRolePrefix + "fleet"
	if _, err := bindings.Patch(t.Context(), name, types.MergePatchType, []byte(`{"subjects":[]}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "a binding that somebody emptied is put right", func() bool {
		b, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && len(b.Subjects) == 2
	})
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000Z") }
	const mark = `"metadata":{"annotations":{"openyurt.io/delegate-heartbeat":"true"}}`
	w.eventually(t, "a renewTime that grows, once kube-apiserver knows the binding again", func() bool {
		return patch("f-1", `{`+mark+`,"spec":{"renewTime":"`+at(0)+`"}}`) == nil
	})
	for what, text := range map[string]string{
		"a renewTime that shrinks": `{` + mark + `,"spec":{"renewTime":"` + at(-time.Hour) + `"}}`,
		"a renewTime that stays":   `{` + mark + `}`,
		"no renewTime":             `{` + mark + `,"spec":{"renewTime":null}}`,
		"another holder": `{` + mark + `,"spec":{"renewTime":"` + at(time.Second) +
			`","holderIdentity":"f-2"}}`,
		"another duration": `{` + mark + `,"spec":{"renewTime":"` + at(time.Second) +
			`","leaseDurationSeconds":4000}}`,
		"the annotation taken away": `{"metadata":{"annotations":{"openyurt.io/delegate-heartbeat":null}},` +
			`"spec":{"renewTime":"` + at(time.Second) + `"}}`,
		"another value of the annotation": `{"metadata":{"annotations":{"openyurt.io/delegate-heartbeat":"yes"}},` +
			`"spec":{"renewTime":"` + at(time.Second) + `"}}`,
		"another annotation": `{"metadata":{"annotations":{"openyurt.io/delegate-heartbeat":"true",` +
			`"a":"b"}},"spec":{"renewTime":"` + at(time.Second) + `"}}`,
		"a label": `{"metadata":{"annotations":{"openyurt.io/delegate-heartbeat":"true"},` +
			`"labels":{"a":"b"}},"spec":{"renewTime":"` + at(time.Second) + `"}}`,
		"a finalizer, so that nobody can delete it": `{"metadata":{"annotations":{"openyurt.io/delegate-heartbeat":"true"},` +
			`"finalizers":["a.b/c"]},"spec":{"renewTime":"` + at(time.Second) + `"}}`,
	} {
		if err := patch("f-1", text); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "weir-forwarders") {
			t.Errorf("%s: %v", what, err)
		}
	}
	grown := `{` + mark + `,"spec":{"renewTime":"` + at(time.Minute) + `"}}`
	if err := patch("o-1", grown); !apierrors.IsForbidden(err) {
		t.Errorf("a node of another pool: %v", err)
	}
	if l, err := f.Get(t.Context(), "f-1", metav1.GetOptions{}); err != nil {
		t.Error(err)
	} else {
		l.ResourceVersion, l.Name = "", "f-9"
		if _, err := f.Create(t.Context(), l, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("create: %v", err)
		}
	}
	if err := f.Delete(t.Context(), "f-1", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete: %v", err)
	}
	if _, err := f.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list: %v", err)
	}

	w.nodes(t, "fleet", "f-3")
	w.eventually(t, "a node that joins is forwarded", func() bool { return patch("f-3", grown) == nil })
	third := w.as(contract.ForwarderUserPrefix+"fleet:f-3", contract.ForwarderGroup, contract.ForwarderGroupPrefix+"fleet",
		"system:authenticated").
		CoordinationV1().Leases(contract.NodeLeaseNamespace)
	group := w.as(contract.ForwarderUserPrefix+"fleet", contract.ForwarderGroup, contract.ForwarderGroupPrefix+"fleet",
		"system:authenticated").
		CoordinationV1().Leases(contract.NodeLeaseNamespace)
	if _, err := group.Get(t.Context(), "f-3", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("whoever has the pool's groups, and is no node's user: %v", err)
	}
	for _, name := range []string{"f-1", "f-2"} {
		if err := w.client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(t, "a node that leaves is not, and forwards nothing itself", func() bool {
		_, two := third.Get(t.Context(), "f-2", metav1.GetOptions{})
		_, three := third.Get(t.Context(), "f-3", metav1.GetOptions{})
		return apierrors.IsForbidden(two) && three == nil && apierrors.IsForbidden(patch("f-3", grown))
	})
	if err := w.client.CoreV1().Nodes().Delete(t.Context(), "f-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "a pool without nodes has no Role", func() bool {
		_, role := w.client.RbacV1().Roles(contract.NodeLeaseNamespace).Get(t.Context(), contract.ForwarderRolePrefix+"fleet",
			metav1.GetOptions{})
		_, binding := w.client.RbacV1().RoleBindings(contract.NodeLeaseNamespace).Get(t.Context(),
			contract.ForwarderRolePrefix+"fleet", metav1.GetOptions{})
		return apierrors.IsNotFound(role) && apierrors.IsNotFound(binding)
	})
}

// lose does to a node what stock controllers do when they do not hear it.
func (w *world) lose(t *testing.T, names ...string) {
	t.Helper()
	stock := w.as(nodeController, accounts...).CoreV1().Nodes()
	for _, name := range names {
		status := `{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown",` +
			`"lastTransitionTime":"` +
			time.Now().UTC().Format(time.RFC3339) + `"}]}}`
		if _, err := stock.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{},
			"status"); err != nil {
			t.Fatal(err)
		}
		w.setTaints(t, name, append(w.node(t, name).Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute,
			TimeAdded: new(metav1.NewTime(time.Now().Add(-time.Hour))),
		}))
	}
}

// find does what kubelet and stock controllers do when a node is back.
func (w *world) find(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		status := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`
		if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType, []byte(status),
			metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		w.setTaints(t, name, slices.DeleteFunc(w.node(t, name).Spec.Taints,
			func(k corev1.Taint) bool { return k.Key == corev1.TaintNodeUnreachable }))
	}
}

func (w *world) setTaints(t *testing.T, name string, taints []corev1.Taint) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, text,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) kept(t *testing.T, names ...string) bool {
	t.Helper()
	list := w.listed(t, contract.KeptNodes)
	return !slices.ContainsFunc(names, func(n string) bool { _, ok := list[n]; return !ok })
}

// testDead: a node whose peers are heard is never kept, whatever stock controllers do to it.
func testDead(t *testing.T, w *world) {
	w.nodes(t, "dead", "x-1", "x-2")
	w.speak(false, "x-1", "x-2")
	w.eventually(t, "nobody is kept", func() bool { return !w.kept(t, "x-1") && !w.kept(t, "x-2") })
	w.hush("x-1")
	w.eventually(t, "it is known to be dead", func() bool { return strings.Contains(w.memory(t), `"x-1"`) })
	w.lose(t, "x-1")
	if w.kept(t, "x-1") {
		t.Error("a dead node is kept")
	}
	if c := condition(w.node(t, "x-1"), contract.CutOffCondition); c.Type != "" {
		t.Errorf("condition %+v", c)
	}
	w.hush("x-2")
	w.eventually(t, "its pool is kept when it falls silent", func() bool { return w.kept(t, "x-2") })
	if w.kept(t, "x-1") {
		t.Error("a node that was dead before is kept with its pool")
	}
}

// memory is what the manager notes for its successor.
func (w *world) memory(t *testing.T) string {
	t.Helper()
	c, err := w.client.CoreV1().ConfigMaps(contract.ManagerNamespace).Get(t.Context(), contract.KeptNodes,
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Data["_weir"]
}

// policy says what happens to a pool that is silent, as anyone who operates the cluster does.
func (w *world) policy(t *testing.T, name, whenSilent string) {
	t.Helper()
	text := `{"apiVersion":"weir.dev/v1alpha1","kind":"Pool","metadata":{"name":"` + name + `"},"spec":{"whenSilent":` +
		whenSilent + `}}`
	if err := w.cloud.Apply(t.Context(), []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// testSilent: a silent pool is kept, then given up, and returns.
func testSilent(t *testing.T, w *world) {
	w.nodes(t, "quiet", "q-1", "q-2")
	w.pod(t, "on-q-1", "q-1", nil)
	w.speak(false, "q-1", "q-2")
	w.eventually(t, "nobody is kept", func() bool { return !w.kept(t, "q-1") && !w.kept(t, "q-2") })
	stock := w.as(nodeController, accounts...)

	w.hush("q-1", "q-2")
	w.eventually(t, "a silent pool is kept", func() bool { return w.kept(t, "q-1", "q-2") })
	w.lose(t, "q-1", "q-2")
	w.eventually(t, "the Node says why", func() bool {
		c := condition(w.node(t, "q-1"), contract.CutOffCondition)
		return c.Status == corev1.ConditionUnknown && c.Reason == "PoolSilent"
	})
	if _, err := markNotReady(t, stock, "on-q-1"); err != nil || !ready(w.getPod(t, "on-q-1")) {
		t.Errorf("mark a pod not ready: %v, %+v", err, w.getPod(t, "on-q-1").Status.Conditions)
	}
	if err := remove(t, stock, "on-q-1", false); !apierrors.IsForbidden(err) {
		t.Errorf("evict a pod: %v", err)
	}
	added := taint(w.node(t, "q-1"), corev1.TaintNodeUnreachable).TimeAdded

	w.policy(t, "quiet", `{"action":"Evict","after":"1s"}`)
	w.eventually(t, "a pool that is given up is not kept", func() bool { return !w.kept(t, "q-1") && !w.kept(t, "q-2") })
	w.eventually(t, "its pods are not ready, and taint eviction begins again", func() bool {
		k := taint(w.node(t, "q-1"), corev1.TaintNodeUnreachable) // it is away for a moment
		return !ready(w.getPod(t, "on-q-1")) && k != nil && added.Before(k.TimeAdded)
	})
	w.eventually(t, "nothing is owed any more", func() bool { return !strings.Contains(w.memory(t), "owed") })
	if err := remove(t, stock, "on-q-1", true); err != nil {
		t.Errorf("evict a pod that is given up: %v", err)
	}
	w.eventually(t, "the Node says so", func() bool {
		return condition(w.node(t, "q-1"), contract.CutOffCondition).Reason == "PoolGivenUp"
	})

	w.speak(false, "q-1", "q-2")
	w.eventually(t, "what is heard is kept until the cloud sees it", func() bool { return w.kept(t, "q-1", "q-2") })
	w.find(t, "q-1", "q-2")
	w.eventually(t, "all is as it was", func() bool {
		return !w.kept(t, "q-1") && !w.kept(t, "q-2") &&
			condition(w.node(t, "q-1"), contract.CutOffCondition).Status == corev1.ConditionFalse
	})
}

// testBound: the names of nodes annotated so are for taint eviction only.
func testBound(t *testing.T, w *world) {
	w.nodes(t, "bound", "b-1", "b-2")
	w.speak(false, "b-1", "b-2")
	annotate := func(text string) {
		t.Helper()
		patch := []byte(`{"metadata":{"annotations":{"` + contract.AutonomyAnnotation + `":` + text + `}}}`)
		if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), "b-1", types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bound := func() bool { _, ok := w.listed(t, contract.BoundNodes)["b-1"]; return ok }
	annotate(`"true"`)
	w.eventually(t, "an annotated node is bound", bound)
	annotate(`null`)
	w.eventually(t, "it is not any more", func() bool { return !bound() })
}

// testClocks: what time stands in a Lease does not matter. A node whose clock is set back, which stock Kubernetes holds
// for lost, is kept.
func testClocks(t *testing.T, w *world) {
	w.nodes(t, "clocks", "c-ahead", "c-behind")
	set := func(node string, d time.Duration) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.skew[node] = d
	}
	set("c-ahead", time.Minute)
	w.speak(false, "c-ahead", "c-behind")
	w.eventually(t, "nobody is kept", func() bool { return !w.kept(t, "c-ahead") && !w.kept(t, "c-behind") })
	set("c-behind", -time.Hour)
	w.eventually(t, "a node whose clock was set back is kept, one whose clock is ahead is not", func() bool {
		return w.kept(t, "c-behind") && !w.kept(t, "c-ahead")
	})
	w.speak(true, "c-behind")
	w.eventually(t, "it is seen to be delegated all the same",
		func() bool { return taint(w.node(t, "c-behind"), contract.CutOffTaint) != nil })
	set("c-behind", 0)
	w.speak(false, "c-behind")
	w.eventually(t, "all is well with the right time", func() bool {
		return !w.kept(t, "c-behind") && taint(w.node(t, "c-behind"), contract.CutOffTaint) == nil
	})
}

// testLeaders: of two managers one acts; what it left goes on to hold while nobody does, and its successor goes on from
// there.
func testLeaders(t *testing.T, w *world, first *run) {
	w.nodes(t, "led", "l-1", "l-2")
	w.pod(t, "on-l-1", "l-1", nil)
	w.speak(false, "l-1", "l-2")
	w.eventually(t, "nobody is kept", func() bool { return !w.kept(t, "l-1") && !w.kept(t, "l-2") })
	w.hush("l-1", "l-2")
	w.eventually(t, "a silent pool is kept, and since when is written down", func() bool {
		return w.kept(t, "l-1", "l-2") && strings.Contains(w.memory(t), `"led"`)
	})
	w.lose(t, "l-1", "l-2")
	before := w.leader(t)
	if err := first.end(); err != nil {
		t.Errorf("a manager that is told to stop: %v", err)
	}
	stock := w.as(nodeController, accounts...)
	if err := remove(t, stock, "on-l-1", true); !apierrors.IsForbidden(err) {
		t.Errorf("while no manager runs: %v", err)
	}
	since := w.memory(t)

	second := w.manage(t, nil)
	w.eventually(t, "the second leads", func() bool {
		_, kept := w.listed(t, contract.KeptNodes)["cloud-1"]
		return !kept && w.leader(t) != "" && w.leader(t) != before
	})
	third := w.manage(t, func(c *manager.Config) { c.WhenSilent = "evict:1s" }) // listens, and would act otherwise
	if !w.kept(t, "l-1", "l-2") || !strings.Contains(since, `"led"`) {
		t.Errorf("kept %v, memory before %s, now %s", w.listed(t, contract.KeptNodes), since, w.memory(t))
	}

	// Somebody else takes the Lease: whoever led ends its process, and the other one takes over when the Lease is free.
	leases := w.client.CoordinationV1().Leases(contract.ManagerNamespace)
	steal := []byte(`{"spec":{"holderIdentity":"thief","leaseDurationSeconds":600,"renewTime":"` +
		time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") + `"}}`)
	if _, err := leases.Patch(t.Context(), "weir-manager", types.MergePatchType, steal, metav1.PatchOptions{}); err !=
		nil {
		t.Fatal(err)
	}
	select {
	case err := <-second.done:
		second.done <- err
		if err == nil {
			t.Error("a manager that loses its Lease ends without an error")
		}
	case <-time.After(patience):
		t.Fatal("a manager that lost its Lease goes on")
	}
	if _, err := leases.Patch(t.Context(), "weir-manager", types.MergePatchType, []byte(`{"spec":{"holderIdentity":""}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "the third, with another policy, leads and gives the pool up",
		func() bool { return !w.kept(t, "l-1") && !w.kept(t, "l-2") })
	w.eventually(t, "and releases it", func() bool { return !ready(w.getPod(t, "on-l-1")) })
	if err := third.end(); err != nil {
		t.Error(err)
	}
}

func (w *world) leader(t *testing.T) string {
	t.Helper()
	l, err := w.client.CoordinationV1().Leases(contract.ManagerNamespace).Get(context.WithoutCancel(t.Context()),
		"weir-manager", metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}
