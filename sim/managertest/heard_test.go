package managertest

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
)

// testHeard: the leader of a pool writes the report of its pool, and nobody else does. What weir-manager answers there
// it cannot write.
func testHeard(t *testing.T, w *world) {
	w.nodes(t, "bay", "bay-1", "bay-2")
	w.nodes(t, "bight", "bight-1", "bight-2")
	lead := `{"metadata":{"labels":{"` + contract.LeaderLabel + `":"true"}}}`
	if _, err := w.client.CoreV1().Nodes().Patch(t.Context(), "bay-1", types.MergePatchType, []byte(lead),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	forwarder := func(pool, node string) kubernetes.Interface {
		return w.as(contract.ForwarderUserPrefix+pool+":"+node, contract.ForwarderGroup,
			contract.ForwarderGroupPrefix+pool, "system:authenticated")
	}
	write := func(c kubernetes.Interface, name, body string) error {
		_, err := c.CoordinationV1().Leases(contract.KeyNamespace).Patch(t.Context(), name, types.MergePatchType,
			[]byte(body), metav1.PatchOptions{})
		return err
	}
	const bay = contract.HeardPrefix + "bay"
	report := func(text string) string { return `{"spec":{"holderIdentity":"` + text + `"}}` }
	leader := forwarder("bay", "bay-1")
	w.eventually(t, "a leader may report", func() bool { return write(leader, bay, report("x")) == nil })
	w.eventually(t, "another node does not lead any more", func() bool {
		return apierrors.IsForbidden(write(forwarder("bay", "bay-2"), bay, report("x")))
	})

	agent := "system:serviceaccount:kube-system:cilium-operator" // which may write every Lease
	w.grant(t, agent, rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "update", "patch"},
	}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}})
	node := w.as("system:node:bay-1", "system:nodes", "system:authenticated")
	hub := w.as(contract.HubUserPrefix+"bay:bay-1", "system:authenticated")
	annotate := `{"metadata":{"annotations":{"` + contract.ReceiptAnnotation + `":"x"}}}`
	for _, a := range []struct {
		what   string
		as     kubernetes.Interface
		name   string
		body   string
		denied string // by what; "": it is allowed
	}{
		{"the leader, a report", leader, bay, report("y"), ""},
		{"the leader, the answer", leader, bay, annotate, "a leader changes no metadata"},
		{"the leader, a label", leader, bay, `{"metadata":{"labels":{"a":"b"}}}`, "a leader changes no metadata"},
		{"the leader, a finalizer", leader, bay, `{"metadata":{"finalizers":["a/b"]}}`, "a leader changes no metadata"},
		{"the leader, another field", leader, bay, `{"spec":{"leaseDurationSeconds":1}}`, "holderIdentity only"},
		{"the leader, too much", leader, bay, report(strings.Repeat("x", 32769)), "32768 characters"},
		{"the leader, another pool", leader, contract.HeardPrefix + "bight", report("x"), "cannot patch"},
		{"a leader of another pool", forwarder("bight", "bight-1"), bay, report("x"), "cannot patch"},
		{"a node that does not lead", forwarder("bay", "bay-2"), bay, report("x"), "cannot patch"},
		{"the node", node, bay, report("x"), "cannot patch"},
		{"the node, the answer", node, bay, annotate, "cannot patch"},
		{"the hub's own user", hub, bay, report("x"), "cannot patch"},
		{"who may write every Lease", w.as(agent, "system:authenticated"), bay, report("x"), "weir-heard"},
	} {
		err := write(a.as, a.name, a.body)
		switch {
		case a.denied == "" && err != nil:
			t.Errorf("%s: want it allowed, got %v", a.what, err)
		case a.denied != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.denied)):
			t.Errorf("%s: want it denied, with %q, got %v", a.what, a.denied, err)
		}
	}
	if _, err := leader.CoordinationV1().Leases(contract.KeyNamespace).Get(t.Context(), bay,
		metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a leader reads what only the answers to its reports say: %v", err)
	}
	if err := leader.CoordinationV1().Leases(contract.KeyNamespace).Delete(t.Context(), bay,
		metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a leader removes the Lease: %v", err)
	}
	testHeardGrants(t, w, bay)
	testPriority(t, w, contract.ForwarderUserPrefix+"bay:bay-1", contract.KeyNamespace+"/leases/"+bay,
		contract.ForwarderGroup)
	testPriority(t, w, managerUser, contract.NodeLeaseNamespace+"/leases/bay-1", accounts...)
	for _, name := range []string{"bay-1", "bay-2"} {
		if err := w.client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(t, "Lease and grants go with the pool", func() bool {
		_, lease := w.client.CoordinationV1().Leases(contract.KeyNamespace).Get(t.Context(), bay, metav1.GetOptions{})
		_, role := w.client.RbacV1().Roles(contract.KeyNamespace).Get(t.Context(), bay, metav1.GetOptions{})
		_, binding := w.client.RbacV1().RoleBindings(contract.KeyNamespace).Get(t.Context(), bay, metav1.GetOptions{})
		return apierrors.IsNotFound(lease) && apierrors.IsNotFound(role) && apierrors.IsNotFound(binding)
	})
}

// testHeardGrants: weir-manager lets leaders of a pool patch the Lease of their pool, and grants nothing else by this
// name.
func testHeardGrants(t *testing.T, w *world, name string) {
	m := w.as(managerUser, accounts...).RbacV1()
	meta := metav1.ObjectMeta{Namespace: contract.KeyNamespace, Name: name}
	role := func(resource, named string, verbs ...string) error {
		_, err := m.Roles(meta.Namespace).Update(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{resource}, ResourceNames: []string{named},
			Verbs: verbs,
		}}}, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	bind := func(user string) error {
		_, err := m.RoleBindings(meta.Namespace).Update(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for what, err := range map[string]error{
		"more verbs":    role("leases", name, "patch", "create"),
		"another Lease": role("leases", contract.HeardPrefix+"bight", "patch"),
		"a hub":         bind(contract.HubUserPrefix + "bay:bay-1"),
		"a node":        bind(contract.NodeUserPrefix + "bay-1"),
		"another pool":  bind(contract.ForwarderUserPrefix + "bight:bight-1"),
		"a longer name": bind(contract.ForwarderUserPrefix + "bay-2:bight-1"),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "weir-manager-grants") {
			t.Errorf("%s: want it denied by weir-manager-grants, got %v", what, err)
		}
	}
	if err := errors.Join(role("leases", name, "patch"), bind(contract.ForwarderUserPrefix+"bay:bay-2")); err != nil {
		t.Errorf("what it grants: %v", err)
	}
}

// testPriority: a write that keeps nodes alive waits for nobody who is less important.
func testPriority(t *testing.T, w *world, user, lease string, groups ...string) {
	c := w.cloud.RESTConfig()
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	as, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch,
		w.cloud.URL()+"/apis/coordination.k8s.io/v1/namespaces/"+lease+"?dryRun=All", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", string(types.MergePatchType))
	answer, err := as.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	schema, err := w.client.FlowcontrolV1().FlowSchemas().Get(t.Context(), "weir-heartbeats", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Header.Get("X-Kubernetes-PF-FlowSchema-UID"); got != string(schema.UID) ||
		schema.Spec.PriorityLevelConfiguration.Name != "node-high" {
		t.Errorf("a write of %s to %s is of FlowSchema %q, want %q, answer %s", user, lease, got, schema.UID, answer.Status)
	}
}

// testRollCall: what a leader reports with the links of hubs is renewed, and the receipt says so. A node of another
// pool is not.
func testRollCall(t *testing.T, w *world) {
	w.nodes(t, "cove", "cove-1", "cove-2")
	w.nodes(t, "creek", "creek-1")
	key, err := pki.NewPoolAuthority("cove", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	files, err := (&pki.Succession{Signer: key}).Files()
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: contract.AuthorityPrefix + "cove"}, Data: files}
	if _, err := w.client.CoreV1().Secrets(contract.KeyNamespace).Create(t.Context(), secret,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	leader := w.as(contract.ForwarderUserPrefix+"cove:cove-1", contract.ForwarderGroup, "system:authenticated").
		CoordinationV1().Leases(contract.KeyNamespace)
	// As a hub does: the answer to a report has the receipt of the one before.
	told := heartbeat.Receipt{}
	report := func(r heartbeat.Report) bool {
		body, err := json.Marshal(map[string]any{"spec": map[string]any{"holderIdentity": r.String()}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := leader.Patch(t.Context(), contract.HeardPrefix+"cove", types.MergePatchType, body, metav1.PatchOptions{})
		if err != nil {
			return false
		}
		told, err = heartbeat.OpenReceipt(l.Annotations[contract.ReceiptAnnotation], "cove", pki.Vouches,
			[]*x509.Certificate{key.Cert()})
		return err == nil
	}
	w.eventually(t, "a period is opened", func() bool { return report(heartbeat.Report{}) && told.Period > 0 })

	var entries []heartbeat.Entry
	for i, node := range []string{"cove-1", "cove-2", "creek-1"} {
		chain := heartbeat.NewChain(node, [16]byte{byte(i), 7}, told.Period-1)
		link, _ := chain.Link(told.Period)
		entries = append(entries, heartbeat.Entry{Node: node, Period: told.Period, Link: link, Reaches: true})
		anchor := `{"metadata":{"annotations":{"` + contract.AnchorAnnotation + `":"` + chain.Anchor().String() + `"}}}`
		if node == "cove-2" {
			anchor = `{"metadata":{"annotations":{"` + contract.DelegateHeartbeat + `":"true"}}}` // and no anchor
		}
		if _, err := w.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Patch(t.Context(), node,
			types.MergePatchType, []byte(anchor), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	of := func(node string) *coordinationv1.Lease {
		l, err := w.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	was := map[string]*coordinationv1.Lease{"cove-1": of("cove-1"), "cove-2": of("cove-2"), "creek-1": of("creek-1")}
	all, _ := heartbeat.NewReport(told.Period, entries)
	w.eventually(t, "the report is answered", func() bool {
		_, yes := told.Renewed(all.Roster(), "cove-1")
		return report(all) && yes
	})
	for node, before := range was {
		after := of(node)
		if _, renewed := told.Renewed(all.Roster(), node); renewed != (node == "cove-1") {
			t.Errorf("the receipt says of %s: renewed: %v", node, renewed)
		}
		if grew := lease.RenewTime(after).After(lease.RenewTime(before)); grew != (node == "cove-1") {
			t.Errorf("the Lease of %s grew: %v", node, grew)
		}
		if !maps.Equal(after.Annotations, before.Annotations) || *after.Spec.HolderIdentity != *before.Spec.HolderIdentity {
			t.Errorf("the Lease of %s has other things changed: %+v, was %+v", node, after, before)
		}
	}
	l, err := w.client.CoordinationV1().Leases(contract.KeyNamespace).Get(t.Context(), contract.HeardPrefix+"cove",
		metav1.GetOptions{})
	if err != nil || len(l.ManagedFields) > 0 || len(l.Labels) > 0 {
		t.Errorf("what comes back with each report has %+v, %+v, %v", l.ManagedFields, l.Labels, err)
	}
}
