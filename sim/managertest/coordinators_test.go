package managertest

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/impl/pool"
)

// coordinatorsOf are the Pods of a pool's coordinator that are not about to go, by node.
func (w poolWorld) coordinatorsOf(name string) map[string]*corev1.Pod {
	w.t.Helper()
	all, err := w.client.CoreV1().Pods(contract.ManagerNamespace).List(w.t.Context(),
		metav1.ListOptions{LabelSelector: contract.NodePoolLabel + "=" + name})
	if err != nil {
		w.t.Fatal(err)
	}
	nodes := map[string]*corev1.Pod{}
	for i := range all.Items {
		if all.Items[i].DeletionTimestamp.IsZero() {
			nodes[all.Items[i].Spec.NodeName] = &all.Items[i]
		}
	}
	return nodes
}

// serves says of a Pod what its kubelet would say when it is ready.
func (w poolWorld) serves(p *corev1.Pod) {
	w.t.Helper()
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
	}
	if _, err := w.client.CoreV1().Pods(p.Namespace).UpdateStatus(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// annotation is one of the Endpoints leader-hub-<pool>.
func (w poolWorld) annotation(pool, name string) string {
	e := &corev1.Endpoints{}
	if err := w.typed.Get(w.t.Context(), types.NamespacedName{
		Namespace: contract.ManagerNamespace, Name: contract.LeaderHubPrefix + pool,
	}, e); err != nil {
		w.t.Fatal(err)
	}
	return e.Annotations[name]
}

// lost lets the node lifecycle controller say of a node that it has not been heard for an hour.
func (w poolWorld) lost(name string) {
	w.t.Helper()
	n := w.node(w.t, name)
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(time.Now().Add(-time.Hour))
		}
	}
	if _, err := w.client.CoreV1().Nodes().UpdateStatus(w.t.Context(), n, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// gone says of a Pod what its kubelet would when it has ended.
func (w poolWorld) gone(p *corev1.Pod) {
	w.t.Helper()
	if err := w.client.CoreV1().Pods(p.Namespace).Delete(w.t.Context(), p.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

// digested is an image as releases name it.
var digested = "ghcr.io/weir-edge/weir-coordinator@sha256:" + strings.Repeat("2", 64)

// images are those of a pool's coordinators, by node.
func (w poolWorld) images(pool string) (all []string) {
	for node, p := range w.coordinatorsOf(pool) {
		all = append(all, node+" "+p.Spec.Containers[0].Image)
	}
	slices.Sort(all)
	return all
}

// threeCoordinators: the one coordinator becomes three, while hubs use it until a majority of the three serves; another
// image comes to one after the other; and the replica of a node that is lost is placed again, beside the two others, to
// which it comes.
func (w poolWorld) threeCoordinators(change func(spec string)) {
	t := w.t
	tells := func(addresses ...string) func() bool {
		return func() bool { _, where := w.told("buoy"); return where == strings.Join(addresses, ",") }
	}
	single := w.coordinatorsOf("buoy")["buoy-3"]
	change(`{"coordinator":{"nodes":null,"replicas":3,"replaceAfter":"1m"}}`)
	w.eventually(t, "two of three begin where there is room", func() bool { return len(w.coordinatorsOf("buoy")) == 3 })
	if is := w.coordinatorsOf("buoy")["buoy-3"]; is == nil || is.UID != single.UID || !tells("https://10.3.0.3:10270")() {
		t.Error("the one that hubs use is gone before others serve")
	}
	w.serves(w.coordinatorsOf("buoy")["buoy-1"])
	w.serves(w.coordinatorsOf("buoy")["buoy-2"])
	w.eventually(t, "the one of before makes room for the third",
		func() bool { p := w.coordinatorsOf("buoy")["buoy-3"]; return p == nil || p.UID != single.UID })
	w.gone(single)
	w.eventually(t, "the third begins", func() bool { return w.coordinatorsOf("buoy")["buoy-3"] != nil })
	w.serves(w.coordinatorsOf("buoy")["buoy-3"])
	three := func() bool {
		s := w.own("buoy").Status
		ready := 0
		for _, r := range s.Replicas {
			if r.Ready && !r.Joins {
				ready++
			}
		}
		return ready == 3 && len(s.Coordinators) == 3 && meta.IsStatusConditionTrue(s.Conditions, pool.CoordinatorPlaced)
	}
	w.eventually(t, "the Pool says where they are, and that they serve", three)
	args := strings.Join(w.coordinatorsOf("buoy")["buoy-1"].Spec.Containers[0].Args, " ")
	for _, want := range []string{
		"--name=" + contract.ReplicaName("buoy-1"), "=https://10.3.0.2:10271", "=https://10.3.0.3:10270",
		"--initial-cluster-state=new",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("%s lacks %s", args, want)
		}
	}

	running := func(p *corev1.Pod, container string, ready corev1.ConditionStatus) {
		t.Helper()
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "weir-coordinator", ContainerID: container}}
		p.Status.Conditions[0].Status = ready
		p.ResourceVersion = "" // a kubelet patches the status, whatever else has changed meanwhile
		if _, err := w.client.CoreV1().Pods(p.Namespace).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range w.coordinatorsOf("buoy") {
		running(p, "sim://1", corev1.ConditionTrue)
	}
	change(`{"coordinator":{"image":"weir-coordinator:1"}}`)
	for n := range 3 {
		upgraded := func() (all []string) {
			return slices.DeleteFunc(w.images("buoy"), func(s string) bool { return !strings.HasSuffix(s, ":1") })
		}
		w.eventually(t, "another image comes to one more of three", func() bool { return len(upgraded()) == n+1 })
		w.eventually(t, "which is not ready before its kubelet has started that", func() bool { return !three() })
		all := upgraded()
		if len(all) != n+1 {
			t.Fatalf("two are upgraded at a time: %v", all)
		}
		for node, p := range w.coordinatorsOf("buoy") {
			if slices.Contains(all, node+" weir-coordinator:1") { // and not those that have become it since
				running(p, "sim://2", corev1.ConditionTrue)
			}
		}
	}
	w.eventually(t, "all three are ready with it", three)

	w.nodeAt(t, "buoy", "buoy-4", "10.3.0.4")
	w.speak(false, "buoy-4")
	running(w.coordinatorsOf("buoy")["buoy-1"], "sim://2", corev1.ConditionFalse)
	w.eventually(t, "one of three is not ready", func() bool { return !three() })
	w.lost("buoy-2")
	waits := func() bool {
		c := meta.FindStatusCondition(w.own("buoy").Status.Conditions, pool.CoordinatorPlaced)
		return c != nil && strings.Contains(c.Message, "when the others are ready")
	}
	w.eventually(t, "a second one that is lost waits for the first", waits)
	if w.coordinatorsOf("buoy")["buoy-4"] != nil {
		t.Error("a replica is placed anew while another one does not serve")
	}
	running(w.coordinatorsOf("buoy")["buoy-1"], "sim://2", corev1.ConditionTrue)
	w.eventually(t, "the replica of a node that is lost comes to another one",
		func() bool { return w.coordinatorsOf("buoy")["buoy-4"] != nil })
	fourth := w.coordinatorsOf("buoy")["buoy-4"]
	if args := strings.Join(fourth.Spec.Containers[0].Args, " "); !strings.Contains(args,
		"--initial-cluster-state=existing") || strings.Contains(args, "10.3.0.2") {
		t.Errorf("it does not come to the two others: %s", args)
	}
	w.serves(fourth)
	w.eventually(t, "hubs are told of it", func() bool {
		_, where := w.told("buoy")
		return strings.Contains(where, "10.3.0.4") && !strings.Contains(where, "10.3.0.2") &&
			strings.Count(where, "https://") == 3
	})
	w.eventually(t, "and replicas", func() bool {
		return !strings.Contains(w.annotation("buoy", contract.LeaderHubReplicas), "/10.3.0.2")
	})
}

// testCoordinators: weir-manager runs the coordinator of a pool on one of its nodes, tells hubs of it when it is ready,
// upgrades it, and moves it so that the new one is there before the old one goes. Its token can run nothing else.
func testCoordinators(t *testing.T, w0 *world) {
	w := poolWorld{w0, t, w0.typed(t)}
	ctx := t.Context()
	if _, err := w.client.CoreV1().ServiceAccounts(contract.ManagerNamespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"buoy-1": "10.3.0.1", "buoy-2": "10.3.0.2", "buoy-3": "10.3.0.3"} {
		w.nodeAt(t, "buoy", name, address)
		w.speak(false, name)
	}
	if err := w.typed.Create(ctx, &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "buoy"}}); err != nil {
		t.Fatal(err)
	}
	own := &pool.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: "buoy"}, Spec: pool.Spec{
			Coordinator: &pool.Coordinator{Image: "weir-coordinator:1", Nodes: []string{"buoy-2", "buoy-1"}},
		},
	}
	w.list(t, contract.CoordinatorImages, `{"`+contract.PullSecretsKey+`":"mirror\n"}`)
	if err := w.typed.Create(ctx, own); err != nil {
		t.Fatal(err)
	}
	is := func(reason string) func() bool {
		return func() bool {
			c := meta.FindStatusCondition(w.own("buoy").Status.Conditions, pool.CoordinatorPlaced)
			return c != nil && c.Reason == reason
		}
	}
	w.eventually(t, "an image that nobody has allowed is not run, and the Pool says why", func() bool {
		c := meta.FindStatusCondition(w.own("buoy").Status.Conditions, pool.CoordinatorPlaced)
		return c != nil && c.Reason == "WriteFailed" && strings.Contains(c.Message, contract.CoordinatorImages)
	})
	w.list(t, contract.CoordinatorImages, `{"`+contract.CoordinatorImagesKey+`":"weir-coordinator:1\n`+digested+`\n"}`)
	w.eventually(t, "it runs on the first node that may run it",
		func() bool { return w.coordinatorsOf("buoy")["buoy-2"] != nil && is("NotReady")() })
	first := w.coordinatorsOf("buoy")["buoy-2"]
	if len(w.coordinatorsOf("buoy")) != 1 || !first.Spec.HostNetwork || first.OwnerReferences[0].Kind != "Pool" ||
		!slices.Equal(first.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "mirror"}}) ||
		w.node(t, "buoy-2").Labels[contract.CoordinatorLabel] != contract.ReplicaName("buoy-2") {
		t.Errorf("%d Pods, %+v", len(w.coordinatorsOf("buoy")), first)
	}
	if _, where := w.told("buoy"); where != "" {
		t.Errorf("hubs are told of one that is not ready: %s", where)
	}
	w.eventually(t, "the hub of its node hears that it is to get the certificates", func() bool {
		return strings.HasSuffix(w.annotation("buoy", contract.LeaderHubReplicas), "/buoy-2/10.3.0.2")
	})
	tells := func(address string) func() bool {
		return func() bool {
			mode, where := w.told("buoy")
			return mode == contract.ModeCoordinator && where == address
		}
	}
	w.serves(first)
	w.eventually(t, "hubs are told when it is ready", tells("https://10.3.0.2:10270"))
	w.eventually(t, "and the Pool says so", is("Running"))

	change := func(spec string) {
		t.Helper()
		if err := w.typed.Patch(ctx, own, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))); err != nil {
			t.Fatal(err)
		}
	}
	change(`{"coordinator":{"image":"` + digested + `"}}`)
	w.eventually(t, "another image comes into the Pod that there is", func() bool {
		p := w.coordinatorsOf("buoy")["buoy-2"]
		return p != nil && p.UID == first.UID && p.Spec.Containers[0].Image == digested
	})
	runs := func(image string) func() bool {
		return func() bool {
			p := w.coordinatorsOf("buoy")["buoy-2"]
			return p != nil && p.UID == first.UID && p.Spec.Containers[0].Image == image
		}
	}
	w.list(t, contract.CoordinatorImages, `{"`+contract.CoordinatorImagesRelease+`":"weir-coordinator:2"}`)
	change(`{"coordinator":{"image":null}}`)
	w.eventually(t, "without an image it is that of the release", runs("weir-coordinator:2"))
	w.list(t, contract.CoordinatorImages, `{"`+contract.CoordinatorImagesRelease+`":"weir-coordinator:3"}`)
	w.eventually(t, "and another one when the release is upgraded", runs("weir-coordinator:3"))
	change(`{"coordinator":{"image":"` + digested + `"}}`)
	w.eventually(t, "one that the Pool names counts first", runs(digested))
	change(`{"coordinator":{"nodes":["buoy-3"]}}`)
	w.eventually(t, "it is moved: the new one is made, and the old one is there", func() bool {
		all := w.coordinatorsOf("buoy")
		return all["buoy-3"] != nil && all["buoy-2"] != nil
	})
	if !tells("https://10.3.0.2:10270")() {
		t.Error("hubs are sent away from the old one before the new one is ready")
	}
	w.serves(w.coordinatorsOf("buoy")["buoy-3"])
	w.eventually(t, "hubs are told of the new one", tells("https://10.3.0.3:10270"))
	if w.coordinatorsOf("buoy")["buoy-2"] == nil {
		t.Error("the old one goes before hubs can have left it")
	}
	w.eventually(t, "the old one hears that it is left out",
		func() bool { return !strings.Contains(w.annotation("buoy", contract.LeaderHubReplicas), "buoy-2") })
	w.eventually(t, "the old one goes", func() bool { return w.coordinatorsOf("buoy")["buoy-2"] == nil })
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)} // as its kubelet does when it has ended
	if err := w.client.CoreV1().Pods(contract.ManagerNamespace).Delete(ctx, first.Name, now); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "and so does the label of its Node",
		func() bool { return w.node(t, "buoy-2").Labels[contract.CoordinatorLabel] == "" })

	m, dry := w.as(managerUser, accounts...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	good := w.coordinatorsOf("buoy")["buoy-3"]
	for what, do := range map[string]func(*corev1.Pod){
		"":                     func(*corev1.Pod) {},
		"another image":        func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil" },
		"another name":         func(p *corev1.Pod) { p.Name = "x" },
		"the disk of the host": func(p *corev1.Pod) { p.Spec.Volumes[0].HostPath.Path = "/" },
		"another command":      func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh"} },
		"privileges":           func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.Capabilities.Drop = nil },
		"a second container": func(p *corev1.Pod) {
			second := p.Spec.Containers[0].DeepCopy()
			second.Name, second.Ports = "b", nil
			p.Spec.Containers = append(p.Spec.Containers, *second)
		},
		"processes of the host": func(p *corev1.Pod) { p.Spec.HostPID = true },
		"a token":               func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil },
	} {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "weir-coordinator-x", Labels: good.Labels}, Spec: *good.Spec.DeepCopy(),
		}
		do(p)
		_, err := m.CoreV1().Pods(contract.ManagerNamespace).Create(ctx, p, dry)
		if what == "" && err != nil ||
			what != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "weir-manager-coordinator")) {
			t.Errorf("a Pod with %q: %v", what, err)
		}
	}
	w.threeCoordinators(change)
	change(`{"coordinator":null}`)
	w.eventually(t, "coordinators that are not wanted go",
		func() bool { return len(w.coordinatorsOf("buoy")) == 0 && tells("")() })
	for _, o := range []client.Object{own, w.pool("buoy")} {
		if err := w.typed.Delete(ctx, o); err != nil {
			t.Error(err)
		}
	}
	w.hush("buoy-1", "buoy-2", "buoy-3", "buoy-4")
}
