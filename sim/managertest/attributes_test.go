package managertest

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
)

// testAttributes: labels, annotations and taints of a NodePool come to its Nodes and are removed, and what hubs may
// read follows what the pool shares. Nobody can use weir-manager for more.
func testAttributes(t *testing.T, w0 *world) {
	w := poolWorld{w0, t, w0.typed(t)}
	ctx := t.Context()
	w.nodes(t, "mole", "at-1", "at-2")
	w.nodes(t, "", "at-3")
	w.patchNode("at-1", `{"metadata":{"labels":{"example.com/theirs":"1"}}}`)
	for _, name := range []string{"mole", "spit"} {
		p := &nodepool.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: nodepool.Spec{
			Labels: map[string]string{
				"example.com/pool": name,
			}, Annotations: map[string]string{"example.com/note": "of " + name},
			Taints:            []corev1.Taint{{Key: "example.com/" + name, Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
			PoolScopeMetadata: []nodepool.Resource{{Version: "v1", Resource: "configmaps"}},
		}}
		if err := w.typed.Create(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	has := func(node, pool string) bool {
		n := w.node(t, node)
		return n.Labels["example.com/pool"] == pool && (pool == "" || n.Annotations["example.com/note"] == "of "+pool) &&
			(taint(n, "example.com/mole") != nil) == (pool == "mole") &&
			(taint(n, "example.com/spit") != nil) == (pool == "spit") &&
			(n.Annotations[contract.PoolAttributes] == "") == (pool == "")
	}
	w.eventually(t, "nodes of the pool have what it says",
		func() bool { return has("at-1", "mole") && has("at-2", "mole") })
	if !has("at-3", "") || w.node(t, "at-1").Labels["example.com/theirs"] != "1" {
		t.Errorf("others: %+v", w.node(t, "at-3").ObjectMeta)
	}
	w.patchNode("at-1", `{"metadata":{"labels":{"example.com/pool":null}}}`)
	w.eventually(t, "what somebody took away comes back", func() bool { return has("at-1", "mole") })
	hub := func(pool, node string) bool {
		_, err := w.as("weir:hub:"+pool+":"+node, "system:authenticated").CoreV1().ConfigMaps("").List(
			ctx, metav1.ListOptions{Limit: 1})
		return err == nil
	}
	w.eventually(t, "hubs of the pool may read what it shares",
		func() bool { return hub("mole", "at-1") && hub("mole", "at-2") })

	w.patchNode("at-1", `{"metadata":{"labels":{"`+contract.NodePoolLabel+`":"spit"}}}`)
	w.eventually(t, "a node that is moved has what the other pool says", func() bool { return has("at-1", "spit") })
	w.eventually(t, "and its hub reads there, and not here",
		func() bool { return hub("spit", "at-1") && !hub("mole", "at-1") })
	w.patchNode("at-2", `{"metadata":{"labels":{"`+contract.NodePoolLabel+`":"atlantis"}}}`)
	w.eventually(t, "a pool that does not exist gives nothing",
		func() bool { return has("at-2", "") && !hub("mole", "at-2") })
	w.patchNode("at-2", `{"metadata":{"labels":{"`+contract.NodePoolLabel+`":"mole"}}}`)
	w.eventually(t, "it is back, and has what it had", func() bool { return has("at-2", "mole") })
	w.patchNode("at-2", `{"metadata":{"labels":{"`+contract.NodePoolLabel+`":null}}}`)
	w.eventually(t, "a node that leaves for no other pool keeps nothing", func() bool { return has("at-2", "") })
	w.patchNode("at-2", `{"metadata":{"labels":{"`+contract.NodePoolLabel+`":"atlantis"}}}`)

	change := client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"labels":{"kubernetes.io/hostname":"x","example.com/pool":"spit"},`+
			`"poolScopeMetadata":[{"group":"","version":"v1","resource":"nodes"}]}}`))
	if err := w.typed.Patch(ctx, w.pool("spit"), change); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "a label that says who a node is is refused", func() bool {
		for _, c := range w.pool("spit").Status.Conditions {
			if c.Type == nodepool.AttributesAccepted {
				return c.Status == metav1.ConditionFalse && c.Reason == "Refused"
			}
		}
		return false
	})
	w.eventually(t, "hubs may read what is shared now, and not what was", func() bool {
		_, err := w.as("weir:hub:spit:at-1", "system:authenticated").CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && !hub("spit", "at-1")
	})

	w.thief()
	if err := w.typed.Delete(ctx, w.pool("spit")); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "a NodePool that goes takes back what it gave", func() bool { return has("at-1", "") })
	for _, n := range []string{"at-1", "at-2"} {
		w.patchNode(n, `{"metadata":{"labels":{"`+contract.NodePoolLabel+`":null}}}`)
	}
	w.eventually(t, "nothing is left of a pool without nodes", func() bool {
		_, role := w.client.RbacV1().ClusterRoles().Get(ctx, "weir:hub-scope:spit", metav1.GetOptions{})
		_, binding := w.client.RbacV1().ClusterRoleBindings().Get(ctx, "weir:hub-scope:mole", metav1.GetOptions{})
		return apierrors.IsNotFound(role) && apierrors.IsNotFound(binding)
	})
	if err := w.typed.Delete(ctx, w.pool("mole")); err != nil {
		t.Error(err)
	}
}

func (w poolWorld) patchNode(name, patch string) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Nodes().Patch(w.t.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// thief: what a stolen token of weir-manager, or a node, can make of all this. at-1 is in the pool spit, which gives a
// label, an annotation and a taint. at-2 is in a pool that no NodePool describes.
func (w poolWorld) thief() {
	record := w.node(w.t, "at-1").Annotations[contract.PoolAttributes]
	with := func(line, rest string) string {
		return `{"metadata":{"annotations":{"` + contract.PoolAttributes + `":"` + line + `"}` + rest + `}}`
	}
	marked := func(pool string) string {
		return `{"metadata":{"annotations":{"` + contract.PoolAttributes + `":"label a=b","` + contract.PoolDescribed +
			`":"` + pool + `"},"labels":{"a":"b"}}}`
	}
	m := w.as(managerUser, accounts...)
	try(w.t, m, "weir-manager", []attempt{
		{"a label that is not recorded", "nodes/at-1", `{"metadata":{"labels":{"example.com/mine":"1"}}}`, true},
		{"a label of somebody else away", "nodes/at-1", `{"metadata":{"labels":{"example.com/theirs":null}}}`, true},
		{"an annotation that is not recorded", "nodes/at-1", `{"metadata":{"annotations":{"example.com/mine":"1"}}}`, true},
		{
			"another pool", "nodes/at-1",
			with("label apps.openyurt.io/nodepool=mole", `,"labels":{"apps.openyurt.io/nodepool":"mole"}`), true,
		},
		{
			"a label that it records itself", "nodes/at-1",
			with("label example.com/mine=1", `,"labels":{"example.com/mine":"1"}`), true,
		},
		{"another value", "nodes/at-1", with("label example.com/pool=other", `,"labels":{"example.com/pool":"other"}`), true},
		{"another value than the record has", "nodes/at-1", `{"metadata":{"labels":{"example.com/pool":"other"}}}`, true},
		{
			"a taint that is not recorded", "nodes/at-1",
			`{"spec":{"taints":[{"key":"example.com/mine","effect":"NoExecute"}]}}`, true,
		},
		{"what it recorded, by the status", "nodes/at-1/status", `{"metadata":{"labels":{"example.com/pool":"mine"}}}`, true},
		{"a record for a node of no pool", "nodes/at-3", with("label a=b", ""), true},
		{"a record where no NodePool can say no", "nodes/at-2", with("label a=b", `,"labels":{"a":"b"}`), true},
		{"the same, with the mark of a NodePool", "nodes/at-2", marked("atlantis"), true},
		{"the same, with the mark of another", "nodes/at-2", marked("spit"), true},
	})
	try(w.t, w.as("system:node:at-1", "system:nodes", "system:authenticated"), "weir-membership", []attempt{
		{"a node writes its record", "nodes/at-1", with("label example.com/theirs=1", ""), true},
	})
	if mark, ok := w.node(w.t, "at-2").Annotations[contract.PoolDescribed]; ok ||
		w.node(w.t, "at-1").Annotations[contract.PoolDescribed] != "spit" {
		w.t.Errorf("a Node of no NodePool has the mark %q, that of spit %v", mark, w.node(w.t, "at-1").Annotations)
	}
	if now := w.node(w.t, "at-1").Annotations[contract.PoolAttributes]; now != record {
		w.t.Errorf("the record is %q, and was %q", now, record)
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	labelled := func(name string, labels map[string]string, r rbacv1.PolicyRule) error {
		o := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: []rbacv1.PolicyRule{r}}
		_, err := m.RbacV1().ClusterRoles().Create(w.t.Context(), o, dry)
		return err
	}
	role := func(name string, r rbacv1.PolicyRule) error { return labelled(name, nil, r) }
	everywhere := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	_, inNamespace := m.RbacV1().RoleBindings("kube-node-lease").Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-forwarder-x"}, RoleRef: everywhere,
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "me"}},
	}, dry)
	read := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}
	altered := func(do func(*rbacv1.PolicyRule)) rbacv1.PolicyRule {
		r := *read.DeepCopy()
		do(&r)
		return r
	}
	for what, err := range map[string]error{
		"a role of another name": role("weir:hub", read),
		"Secrets": role("weir:hub-scope:x",
			altered(func(r *rbacv1.PolicyRule) { r.Resources = []string{"pods", "secrets"} })),
		"everything": role("weir:hub-scope:x",
			altered(func(r *rbacv1.PolicyRule) { r.Resources = []string{"*"} })),
		"all groups": role("weir:hub-scope:x",
			altered(func(r *rbacv1.PolicyRule) { r.APIGroups = []string{"*"} })),
		"to write": role("weir:hub-scope:x",
			altered(func(r *rbacv1.PolicyRule) { r.Verbs = append(r.Verbs, "patch") })),
		"a URL": role("weir:hub-scope:x",
			rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"list"}}),
		"another role bound": w.bind(m.RbacV1().ClusterRoleBindings().Create, "weir:hub-scope:x",
			"cluster-admin", "weir:hub:x:y", dry),
		"a binding of its own": w.bind(m.RbacV1().ClusterRoleBindings().Create, "mine", "weir:hub",
			"weir:hub:x:y", dry),
		"a ClusterRole bound in a namespace": inNamespace,
		"a part of another role": labelled("weir:hub-scope:x",
			map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}, read),
		"somebody else bound": w.bind(m.RbacV1().ClusterRoleBindings().Create, "weir:hub:x", "weir:hub", "me",
			dry),
		"a role away": m.RbacV1().ClusterRoles().Delete(w.t.Context(), "view",
			metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "weir-manager-grants") {
			w.t.Errorf("%s: want it denied by weir-manager-grants, got %v", what, err)
		}
	}
	if err := role("weir:hub-scope:x", read); err != nil {
		w.t.Errorf("a role of its own: %v", err)
	}
}

type createBinding func(context.Context, *rbacv1.ClusterRoleBinding, metav1.CreateOptions) (*rbacv1.ClusterRoleBinding,
	error)

func (w poolWorld) bind(create createBinding, name, role, user string, o metav1.CreateOptions) error {
	_, err := create(w.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role,
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, o)
	return err
}
