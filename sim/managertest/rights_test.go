package managertest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
)

const managerUser = "system:serviceaccount:kube-system:weir-manager"

// attempt is one write, and whether a policy forbids it.
type attempt struct {
	what     string
	resource string // nodes/NAME or pods/NAME, with /status or without
	patch    string
	denied   bool
}

// try makes each attempt as the client. What is not to be denied is the control: the same identity, the same object, a
// write that is its own.
func try(t *testing.T, c kubernetes.Interface, policy string, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		parts := append(strings.Split(a.resource, "/"), "")
		var err error
		switch parts[0] {
		case "nodes":
			_, err = c.CoreV1().Nodes().Patch(t.Context(), parts[1], types.StrategicMergePatchType, []byte(a.patch),
				metav1.PatchOptions{}, parts[2])
		default:
			_, err = c.CoreV1().Pods("default").Patch(t.Context(), parts[1], types.StrategicMergePatchType, []byte(a.patch),
				metav1.PatchOptions{}, parts[2])
		}
		switch {
		case a.denied && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), policy)):
			t.Errorf("%s: want it denied by %s, got %v", a.what, policy, err)
		case !a.denied && err != nil:
			t.Errorf("%s: want it allowed, got %v", a.what, err)
		}
	}
}

// grant gives a user rights, and waits until they count.
func (w *world) grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "test:" + user}
	_, err := w.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "the grant counts", func() bool {
		_, err := w.as(user).CoreV1().Nodes().Get(t.Context(), "m-1", metav1.GetOptions{})
		return err == nil
	})
}

// testMembership: a node chooses neither its pool nor that its pods stay on it.
func testMembership(t *testing.T, w *world) {
	w.nodes(t, "members", "m-1")
	w.pod(t, "member", "m-1", nil)
	node := w.as("system:node:m-1", "system:nodes", "system:authenticated")
	label := func(pool string) string {
		return `{"metadata":{"labels":{"` + contract.NodePoolLabel + `":` + pool + `}}}`
	}
	annotation := func(key string) string { return `{"metadata":{"annotations":{"` + key + `":"true"}}}` }
	w.eventually(t, "the policy is in force", func() bool {
		_, err := node.CoreV1().Nodes().Patch(t.Context(), "m-1", types.MergePatchType, []byte(label(`"x"`)),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	})
	try(t, node, "weir-membership", []attempt{
		{"into another pool", "nodes/m-1", label(`"harbour"`), true},
		{"into another pool, by its status", "nodes/m-1/status", label(`"harbour"`), true},
		{"out of its pool", "nodes/m-1", label(`null`), true},
		{"bound", "nodes/m-1", annotation(contract.BindingAnnotation), true},
		{"bound, by its status", "nodes/m-1/status", annotation(contract.BindingAnnotation), true},
		{"autonomous", "nodes/m-1", annotation(contract.AutonomyAnnotation), true},
		{
			"autonomous for a time", "nodes/m-1", `{"metadata":{"annotations":{"` + contract.AutonomyDurationAnnotation +
				`":"0"}}}`, true,
		},
		{"a pod of its own bound", "pods/member/status", annotation(contract.BindingAnnotation), true},
		{"the pool that it is in", "nodes/m-1", label(`"members"`), false},
		{
			"another label", "nodes/m-1", `{"metadata":{"labels":{"example.com/a":"b"},"annotations":{"example.com/a":"b"}}}`,
			false,
		},
		{
			"its status", "nodes/m-1/status",
			`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`, false,
		},
		{
			"the status of its pod", "pods/member/status",
			`{"metadata":{"annotations":{"example.com/a":"b"}},"status":{"message":"runs"}}`, false,
		},
	})
	try(t, w.client, "", []attempt{
		{"an administrator moves it", "nodes/m-1", label(`"harbour"`), false},
		{"an administrator binds it", "nodes/m-1", annotation(contract.BindingAnnotation), false},
	})
	try(t, node, "weir-membership", []attempt{
		{"back", "nodes/m-1", label(`"members"`), true},
		{"unbound", "nodes/m-1", `{"metadata":{"annotations":{"` + contract.BindingAnnotation + `":null}}}`, true},
		{
			"its status, in the new pool", "nodes/m-1/status",
			`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Still"}]}}`, false,
		},
	})

	agent := "system:serviceaccount:kube-flannel:flannel" // with what CNIs and CSI drivers may do
	w.grant(t, agent, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status", "pods/status"}, Verbs: []string{"get", "patch"},
	})
	clerk := "clerk" // who may assign to one pool
	w.grant(t, clerk, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"get", "patch"},
	},
		rbacv1.PolicyRule{
			APIGroups: []string{"apps.openyurt.io"}, Resources: []string{"nodepools"}, Verbs: []string{"assign"},
			ResourceNames: []string{"harbour"},
		})
	leads := func(value string) string {
		return `{"metadata":{"labels":{"` + contract.LeaderLabel + `":` + value + `}}}`
	}
	try(t, w.as(agent, "system:authenticated"), "weir-membership", []attempt{
		{"an agent, into another pool", "nodes/m-1", label(`"members"`), true},
		{"an agent, by the status", "nodes/m-1/status", label(`"members"`), true},
		{"an agent, out of its pool", "nodes/m-1/status", label(`null`), true},
		{"an agent, a leader", "nodes/m-1/status", leads(`"true"`), true},
		{
			"an agent, what is recorded", "nodes/m-1/status", `{"metadata":{"annotations":{"` + contract.PoolAttributes +
				`":"label a=b"}}}`, true,
		},
		{"an agent, a pod bound", "pods/member/status", annotation(contract.BindingAnnotation), true},
		{"an agent, its own label", "nodes/m-1", `{"metadata":{"labels":{"example.com/agent":"b"}}}`, false},
		{
			"an agent, a condition", "nodes/m-1/status",
			`{"metadata":{"annotations":{"a":"c"}},"status":{"conditions":[{"type":"NetworkUnavailable","status":"False"}]}}`,
			false,
		},
		{"an agent, a pod's annotation", "pods/member/status", `{"metadata":{"annotations":{"cni":"c"}}}`, false},
	})
	try(t, w.as(clerk, "system:authenticated"), "weir-membership", []attempt{
		{"who may assign to this pool alone, to another", "nodes/m-1", label(`"members"`), true},
		{"likewise, a leader by the status", "nodes/m-1/status", leads(`"true"`), true},
		{"likewise, a leader of this pool", "nodes/m-1", leads(`"true"`), false},
		{"likewise, and no more", "nodes/m-1", leads(`null`), false},
		{"likewise, out of the pool", "nodes/m-1", label(`null`), false},
		{"likewise, into the pool", "nodes/m-1", label(`"harbour"`), false},
	})
	try(t, w.client, "weir-membership", []attempt{
		{"an administrator, by the status", "nodes/m-1/status", label(`"members"`), true},
	})

	fresh := func(labels, annotations map[string]string) error {
		_, err := w.as("system:node:m-2", "system:nodes", "system:authenticated").CoreV1().Nodes().Create(t.Context(),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m-2", Labels: labels, Annotations: annotations}},
			metav1.CreateOptions{})
		return err
	}
	if err := fresh(map[string]string{contract.NodePoolLabel: "harbour"}, nil); !apierrors.IsForbidden(err) {
		t.Errorf("a node that registers into a pool: %v", err)
	}
	if err := fresh(nil, map[string]string{contract.AutonomyAnnotation: "true"}); !apierrors.IsForbidden(err) {
		t.Errorf("a node that registers as autonomous: %v", err)
	}
	if err := fresh(map[string]string{corev1.LabelHostname: "m-2"}, nil); err != nil {
		t.Errorf("a node that registers: %v", err)
	}
	mirror := func(annotations map[string]string) error {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "static-m-1", Annotations: annotations, OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "Node", Name: "m-1", UID: w.node(t, "m-1").UID, Controller: new(true),
				}},
			},
			Spec: corev1.PodSpec{NodeName: "m-1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		_, err := node.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
		return err
	}
	if err := mirror(map[string]string{
		corev1.MirrorPodAnnotationKey: "x", contract.BindingAnnotation: "true",
	}); !apierrors.IsForbidden(err) {
		t.Errorf("a static pod that is bound: %v", err)
	}
	if err := mirror(map[string]string{corev1.MirrorPodAnnotationKey: "x"}); err != nil {
		t.Errorf("a static pod: %v", err)
	}
}

// testManagerRights: what a stolen token of weir-manager may write. What the manager itself needs, the other tests
// show.
func testManagerRights(t *testing.T, w *world) {
	w.nodes(t, "rights", "r-1", "r-lost")
	w.pod(t, "right", "r-1", nil)
	w.lose(t, "r-lost")
	unreachable := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}
	w.setTaints(t, "r-1", []corev1.Taint{})
	w.setTaints(t, "r-lost", []corev1.Taint{unreachable})
	m := w.as(managerUser, accounts...)
	taints := func(list string) string { return `{"spec":{"taints":` + list + `}}` }
	const (
		cutOff = `{"key":"node.openyurt.io/unschedulable","value":"true","effect":"NoSchedule"}`
		lost   = `{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"}`
		other  = `{"key":"example.com/a","effect":"NoExecute"}`
	)
	try(t, m, "weir-manager", []attempt{
		{"a label", "nodes/r-1", `{"metadata":{"labels":{"a":"b"}}}`, true},
		{"an annotation by status", "nodes/r-1/status", `{"metadata":{"annotations":{"a":"b"}}}`, true},
		{"unschedulable", "nodes/r-1", `{"spec":{"unschedulable":true}}`, true},
		{"another taint", "nodes/r-1", taints(`[` + other + `]`), true},
		{"the taint that evicts, of a node that is heard", "nodes/r-1", taints(`[` + lost + `]`), true},
		{
			"the address of a node", "nodes/r-1/status", `{"status":{"addresses":[{"type":"InternalIP","address":"6.6.6.6"}]}}`,
			true,
		},
		{"a field that was not there", "nodes/r-1/status", `{"status":{"capacity":{"cpu":"1"}}}`, true},
		{"Ready of a node", "nodes/r-1/status", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, true},
		{"the address of a pod", "pods/right/status", `{"status":{"podIP":"6.6.6.6","podIPs":[{"ip":"6.6.6.6"}]}}`, true},
		{"the phase of a pod", "pods/right/status", `{"status":{"phase":"Failed"}}`, true},
		{
			"a pod ready", "pods/right/status", `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Mine"}]}}`,
			true,
		},
		{
			"another condition of a pod", "pods/right/status",
			`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True"}]}}`, true,
		},
		{"a label of a pod", "pods/right/status", `{"metadata":{"labels":{"app":"dns"}}}`, true},
		{"its taint", "nodes/r-1", taints(`[` + cutOff + `]`), false},
		{"its taint gone", "nodes/r-1", taints(`[]`), false},
		{
			"its condition", "nodes/r-1/status",
			`{"status":{"conditions":[{"type":"WeirCutOff","status":"True","reason":"a"}]}}`, false,
		},
		{"a pod not ready", "pods/right/status", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, false},
		{"the unreachable taint of a lost node gone", "nodes/r-lost", taints(`[]`), false},
		{"and set anew", "nodes/r-lost", taints(`[` + lost + `]`), false},
	})
}

// testRenewals: of a node's Lease weir-manager changes what a renewal changes, and nothing else.
func testRenewals(t *testing.T, w *world) {
	w.nodes(t, "grants", "g-1")
	leases := w.as(managerUser, accounts...).CoordinationV1().Leases(contract.NodeLeaseNamespace)
	patch := func(text string) error {
		_, err := leases.Patch(t.Context(), "g-1", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000Z") }
	const entry = `"managedFields":[{"manager":"weir-manager","operation":"Update",` +
		`"apiVersion":"coordination.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:renewTime":{}}}}]`
	renewed := func(at, more, spec string) string {
		return `{"metadata":{` + entry + more + `},"spec":{"renewTime":"` + at + `"` + spec + `}}`
	}
	w.eventually(t, "the policy is in force", func() bool {
		return apierrors.IsForbidden(patch(renewed(at(-time.Hour), "", "")))
	})
	if err := patch(renewed(at(0), "", "")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "anchor") {
		t.Errorf("the Lease of a node that has not said so: want it denied, got %v", err)
	}
	anchor := `{"metadata":{"annotations":{"` + contract.AnchorAnnotation + `":"1"}}}`
	if _, err := w.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Patch(t.Context(), "g-1",
		types.MergePatchType, []byte(anchor), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"a renewTime that does not grow": renewed(at(-time.Hour), "", ""),
		"one far ahead":                  renewed("9999-12-31T00:00:00.000000Z", "", ""),
		"the mark of a node cut off":     renewed(at(0), `,"annotations":{"openyurt.io/delegate-heartbeat":"true"}`, ""),
		"another annotation":             renewed(at(0), `,"annotations":{"`+contract.AnchorAnnotation+`":"x"}`, ""),
		"a label":                        renewed(at(0), `,"labels":{"a":"b"}`, ""),
		"the holder":                     renewed(at(0), "", `,"holderIdentity":"x"`),
		"how long it lasts":              renewed(at(0), "", `,"leaseDurationSeconds":4000`),
	} {
		if err := patch(text); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "weir-forwarders") &&
			!strings.Contains(err.Error(), "Policy 'weir-manager'") {
			t.Errorf("%s: want it denied, got %v", what, err)
		}
	}
	if err := patch(renewed(at(time.Second), "", "")); err != nil {
		t.Errorf("a renewal: %v", err)
	}
}

// testAhead: whoever may forward heartbeats cannot put a node's renewTime so far ahead that stock controllers never
// count another.
func testAhead(t *testing.T, w *world) {
	w.nodes(t, "ahead", "a-1", "a-2")
	group := contract.ForwarderGroupPrefix + "ahead"
	both := w.as(contract.ForwarderUserPrefix+"ahead:a-2", contract.ForwarderGroup, group, "system:authenticated")
	one := w.as(contract.ForwarderUserPrefix+"ahead:a-2", "system:authenticated") // a certificate without a group
	patch := func(c kubernetes.Interface, text, manager string) error {
		_, err := c.CoordinationV1().Leases(contract.NodeLeaseNamespace).Patch(t.Context(), "a-1", types.MergePatchType,
			[]byte(text), metav1.PatchOptions{FieldManager: manager})
		return err
	}
	beat := func(at string, fields string) string {
		return `{"metadata":{"annotations":{"openyurt.io/delegate-heartbeat":"true"}` + fields + `},"spec":{"renewTime":"` +
			at + `"}}`
	}
	// As in a cluster: the Lease is the kubelet's, and the forwarder's first write takes renewTime from it.
	kubelet := `{"spec":{"leaseDurationSeconds":41,"renewTime":"` +
		time.Now().Add(-time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z") + `"}}`
	if err := patch(w.client, kubelet, "kubelet"); err != nil {
		t.Fatal(err)
	}
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000Z") }
	w.eventually(t, "the forwarder may write", func() bool {
		return patch(both, beat(in(0), ""), "ours") == nil
	})
	ours := `,"managedFields":[{"manager":"ours","operation":"Update","apiVersion":"coordination.k8s.io/v1",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:renewTime":{}}}}]`
	other := `,"managedFields":[{"manager":"x","operation":"Update","apiVersion":"coordination.k8s.io/v1",` +
		`"time":"9999-12-31T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:leaseDurationSeconds":{}}}}]`
	forged := `,"managedFields":[{"manager":"x","operation":"Update","apiVersion":"coordination.k8s.io/v1",` +
		`"time":"9999-12-31T00:00:00Z",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:renewTime":{}}}}]`
	for what, text := range map[string]string{
		"the end of time":                  beat("9999-12-31T23:59:59.000000Z", ""),
		"ten minutes ahead":                beat(in(10*time.Minute), ""),
		"with an entry of its own":         beat(in(time.Hour), forged),
		"with an entry of another field":   beat(in(time.Hour), other),
		"without entries":                  beat(in(time.Hour), `,"managedFields":[{}]`),
		"with an entry that is no entry":   beat(in(time.Hour), `,"managedFields":[{"manager":"x"}]`),
		"with its own entry and far ahead": beat("9999-12-31T23:59:59.000000Z", strings.Replace(forged, `"x"`, `"ours"`, 1)),
	} {
		for who, c := range map[string]kubernetes.Interface{"both groups": both, "no group": one} {
			for _, manager := range []string{"ours", "x", ""} {
				if err := patch(c, text, manager); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
					t.Errorf("%s, %s, by %q: %v", who, what, manager, err)
				}
			}
		}
	}
	for range 3 { // one after the other, within one second of the server's clock
		if err := patch(one, beat(in(0), ""), "ours"); err != nil {
			t.Errorf("a heartbeat of now: %v", err)
		}
		for _, fields := range []string{forged, other} {
			if err := patch(one, beat(in(time.Hour), fields), "ours"); !apierrors.IsForbidden(err) {
				t.Errorf("an hour ahead, in the second of the last one, with %s: %v", fields, err)
			}
		}
	}
	// A heartbeat of a kubelet took the managedFields away: kube-apiserver keeps none but what a write brings.
	if err := patch(w.client, `{"metadata":{"managedFields":[{}]}}`, "kubelet"); err != nil {
		t.Fatal(err)
	}
	if err := patch(one, beat(in(0), ""), "ours"); !apierrors.IsForbidden(err) {
		t.Errorf("a heartbeat of a Lease without managedFields that tells no clock: %v", err)
	}
	for _, fields := range []string{ours, ""} {
		if err := patch(one, beat(in(0), fields), "ours"); err != nil {
			t.Errorf("a heartbeat of a Lease without managedFields, with %q: %v", fields, err)
		}
	}
	if err := patch(one, `{"metadata":{"labels":{"a":"b"}}}`, "ours"); !apierrors.IsForbidden(err) {
		t.Errorf("the group of its pool only, a label: %v", err)
	}
}
