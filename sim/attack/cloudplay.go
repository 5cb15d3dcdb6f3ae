package attack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
)

// changeNode tries patches of the own Node, and looks at it after each.
func (x *scene) changeNode(ctx context.Context, of func(*corev1.Node) string, merges []string, pointer,
	value string) error {
	node := func() (*corev1.Node, error) { return x.admin.CoreV1().Nodes().Get(ctx, x.node(1), metav1.GetOptions{}) }
	n, err := node()
	if err != nil {
		return err
	}
	before := of(n)
	try := func(q ask) error {
		q.at = cloudDoor
		a := x.send(ctx, q)
		n, err := node()
		if err != nil {
			return err
		}
		x.judge(of(n) == before, "%s as %s, %.40s: %s", q, q.as, q.body, a)
		if of(n) != before { // so that the next one shows something
			n.Labels, n.Annotations = map[string]string{}, map[string]string{}
			if before != "" {
				n.Labels[contract.NodePoolLabel] = before
			}
			_, err = x.admin.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		}
		return err
	}
	for _, as := range []string{"kubelet", "hub"} {
		for _, path := range []string{"/api/v1/nodes/{node}", "/api/v1/nodes/{node}/status"} {
			for _, body := range merges {
				for _, kind := range []string{mergePatch, strategicPatch} {
					if err := try(
						ask{as: as, method: http.MethodPatch, path: path, header: []string{kind}, body: body},
					); err != nil {
						return err
					}
				}
			}
			apply := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"{node}",` + merges[0][len(`{"metadata":{`):] + `}`
			for _, q := range []ask{
				{header: []string{jsonPatch}, body: fmt.Sprintf(`[{"op":"add","path":%q,"value":%q}]`, pointer, value)},
				{
					header: []string{jsonPatch},
					body: fmt.Sprintf(
						`[{"op":"add","path":"/metadata/annotations","value":{}},{"op":"add","path":%q,"value":%q}]`,
						pointer, value,
					),
				},
				{header: []string{applyPatch}, body: apply},
			} {
				q.as, q.method, q.path = as, http.MethodPatch, path
				if q.header[0] == applyPatch {
					q.path += "?fieldManager=x&force=true"
				}
				if err := try(q); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// nodeLeasesExist makes the Leases of nodes, as kubelets would, and waits until the forwarder of the pool has its
// grant.
func nodeLeasesExist(ctx context.Context, x *scene) error {
	for _, node := range []string{x.node(1), x.node(2), foreign + "-1"} {
		l := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &node},
		}
		seconds, then := int32(40), metav1.NewMicroTime(time.Now().Add(-time.Hour))
		l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &seconds, &then
		leases := x.admin.CoordinationV1().Leases(contract.NodeLeaseNamespace)
		free := []byte(`{"metadata":{"finalizers":null}}`) // an attack before may have set one
		_, _ = leases.Patch(ctx, node, types.MergePatchType, free, metav1.PatchOptions{})
		_ = leases.Delete(ctx, node, metav1.DeleteOptions{})
		if _, err := leases.Create(ctx, l, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return until(ctx, "the forwarder's grant", func() bool {
		return x.send(ctx, ask{as: "forwarder", at: cloudDoor, path: leaseOfOwn}).code == http.StatusOK
	})
}

// forwarderAsks are writes of Leases that no forwarder may do.
func forwarderAsks(as, beat string) []ask {
	asks := []ask{
		{method: http.MethodPatch, path: leaseElsewhere, header: []string{mergePatch}, body: beat},
		{method: http.MethodPatch, path: leaseElsewhere, header: []string{applyPatch}, body: beat},
		{
			method: http.MethodPatch, path: leaseOfOwn, header: []string{mergePatch},
			body: `{"spec":{"holderIdentity":"x","renewTime":"` + "{now}" + `"}}`,
		},
		{
			method: http.MethodPatch, path: leaseOfOwn, header: []string{mergePatch},
			body: `{"metadata":{"labels":{"a":"b"},"annotations":{"` + contract.DelegateHeartbeat +
				`":"true"}},"spec":{"renewTime":"{later}"}}`,
		},
		{
			method: http.MethodPatch, path: leaseOfOwn, header: []string{mergePatch},
			body: `{"metadata":{"finalizers":["a.example.com/b"],"annotations":{"` + contract.DelegateHeartbeat +
				`":"true"}},"spec":{"renewTime":"{later}"}}`,
		},
		{
			method: http.MethodPatch, path: leaseOfOwn, header: []string{mergePatch},
			body: `{"metadata":{"annotations":{"` + contract.DelegateHeartbeat +
				`":"true"}},"spec":{"leaseDurationSeconds":2147483647,"renewTime":"{later}"}}`,
		},
		{
			method: http.MethodPatch, path: leaseOfOwn, header: []string{mergePatch},
			body: `{"metadata":{"annotations":{"` + contract.DelegateHeartbeat +
				`":"true"}},"spec":{"holderIdentity":"x","renewTime":"{later}"}}`,
		},
		{
			method: http.MethodPatch, path: leaseOfOwn, header: []string{mergePatch},
			body: `{"spec":{"renewTime":"{later}"}}`,
		},
		{method: http.MethodDelete, path: leaseOfOwn},
		{method: http.MethodDelete, path: nodeLeases},
		{
			method: http.MethodPost, path: nodeLeases,
			body: `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"mine"},"spec":{}}`,
		},
		{method: http.MethodPatch, path: poolLeases + "/weir-manager", header: []string{mergePatch}, body: beat},
		{path: "/api/v1/namespaces/a/secrets"}, {path: "/api/v1/nodes"},
	}
	for i := range asks {
		asks[i].as, asks[i].codes = as, []int{400, 403, 404, 405, 409, 415, 422}
		if n := len(asks[i].body); n > 0 {
			asks[i].body = strings.ReplaceAll(asks[i].body, "{later}", "{now}")
		}
	}
	return asks
}

// futureBeats tries heartbeats of the future, and looks at what is stored after each.
func futureBeats(beat func(string) string, soon func(time.Duration) string) func(context.Context, *scene) error {
	return func(ctx context.Context, x *scene) error {
		for _, when := range []string{
			"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999-12:00", soon(24 * time.Hour),
			soon(10 * time.Minute),
		} {
			for _, path := range []string{leaseOfOwn, nodeLeases + "/{node 2}"} {
				a := x.send(
					ctx,
					ask{
						as: "forwarder", at: cloudDoor, method: http.MethodPatch, path: path,
						header: []string{mergePatch}, body: beat(when),
					},
				)
				x.judge(a.code >= 400 && a.code < 500, "renewTime %s: %s", when, a)
			}
		}
		// An entry of another field, with a time of its own, in the second in which the server set the time of the writer's.
		const entry = `{"metadata":{"managedFields":[{"manager":"x","operation":"Update","time":"9999-12-31T00:00:00Z",` +
			`"apiVersion":"coordination.k8s.io/v1","fieldsType":"FieldsV1",` +
			`"fieldsV1":{"f:spec":{"f:leaseDurationSeconds":{}}}}],`
		for _, body := range []string{
			beat(soon(0)), strings.Replace(beat(soon(time.Hour)), `{"metadata":{`, entry, 1),
		} {
			a := x.send(ctx, ask{
				as: "forwarder", at: cloudDoor, method: http.MethodPatch, path: leaseOfOwn, header: []string{mergePatch},
				body: body,
			})
			late := strings.Contains(body, "managedFields")
			x.judge(late == (a.code >= 400 && a.code < 500), "a heartbeat an hour ahead (%t): %s", late, a)
		}
		for _, node := range []string{x.node(1), x.node(2)} {
			l, err := x.admin.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			ahead := time.Until(l.Spec.RenewTime.Time).Round(time.Minute)
			x.judge(ahead < 5*time.Minute, "the Lease of %s is %v ahead", node, ahead)
			if ahead > 0 { // for the control
				if err := nodeLeasesExist(ctx, x); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// hubAsks are what a hub's certificate may not do at the cloud.
func hubAsks() []ask {
	asks := []ask{
		{path: "/api/v1/secrets"}, {path: "/api/v1/namespaces/a/secrets"}, {path: "/api/v1/namespaces/a/secrets/canary"},
		{path: "/api/v1/namespaces/a/configmaps/plain"}, {
			path: "/api/v1/nodes/{node 2}",
		},
		{path: nodeLeases + "/{node 2}"}, {path: nodeLeases}, {path: "/api/v1/namespaces/a/pods/sky-other"},
		{path: "/api/v1/pods"}, {
			path: "/api/v1/pods?fieldSelector=spec.nodeName%3D{node 2}",
		},
		{
			method: http.MethodPatch, path: nodeLeases + "/{node 2}", header: []string{mergePatch},
			body: `{"spec":{"holderIdentity":"x"}}`,
		},
		{
			method: http.MethodPatch, path: "/api/v1/nodes/{node 2}/status", header: []string{mergePatch},
			body: `{"status":{"phase":"x"}}`,
		},
		{
			method: http.MethodPatch, path: "/api/v1/namespaces/a/pods/sky-other/status", header: []string{mergePatch},
			body: `{"status":{"phase":"Failed"}}`,
		},
		{method: http.MethodDelete, path: "/api/v1/namespaces/a/pods/sky-other"}, {
			method: http.MethodDelete, path: "/api/v1/nodes/{node 2}",
		},
		{method: http.MethodPatch, path: slicesOfA + "/shop-1", header: []string{mergePatch}, body: `{"endpoints":[]}`},
		{
			method: http.MethodPost, path: "/api/v1/namespaces/a/serviceaccounts/reader/token",
			body: `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{}}`,
		},
		{path: "/api/v1/namespaces/kube-system/configmaps/weir-kept-nodes"},
	}
	all := []ask{ // of what is the node's, which the kubelet may
		{as: "hub", path: "/api/v1/nodes/{node}"},
		{as: "hub", path: "/api/v1/configmaps?labelSelector=a"},
		{as: "hub", path: "/api/v1/pods?fieldSelector=spec.nodeName={node}"},
		{as: "hub", path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"},
		{as: "hub", path: "/api/v1/pods"},
		{as: "hub", path: "/api/v1/serviceaccounts"},
		{as: "hub", path: "/apis/certificates.k8s.io/v1/certificatesigningrequests"},
		{as: "kubelet", path: slices1}, // and of what is the hub's
		{as: "kubelet", path: "/api/v1/endpoints"},
	}
	for _, as := range []string{"hub", "kubelet"} {
		for _, q := range asks {
			q.as = as
			all = append(all, q)
		}
	}
	for i := range all {
		all[i].at, all[i].codes = cloudDoor, []int{403}
	}
	return all
}

func managerToken(ctx context.Context, x *scene) error {
	token, err := x.vault.Cloud().ClientToken(ctx, "weir-manager")
	x.let("manager", actor{token: token})
	if err != nil {
		return err
	}
	// A new policy is in force a moment after it was made. A revision without it is attacked all the same.
	_ = until(ctx, "the policy", func() bool {
		return x.send(ctx, ask{
			as: "manager", at: cloudDoor, method: http.MethodPatch, path: "/api/v1/nodes/{node}?dryRun=All",
			header: []string{mergePatch},
			body:   `{"metadata":{"labels":{"a":"b"}}}`,
		}).code == http.StatusForbidden
	})
	// A patch of taints brings all of them: there are none.
	free := []byte(`{"spec":{"taints":[]}}`)
	if _, err := x.admin.CoreV1().Nodes().Patch(ctx, x.node(1), types.MergePatchType, free, metav1.PatchOptions{}); err !=
		nil {
		return err
	}
	p, err := x.pod(ctx, "sky-managed", x.node(1))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.PodIP, p.Status.PodIPs = "10.9.9.9", []corev1.PodIP{{IP: "10.9.9.9"}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	_, err = x.admin.CoreV1().Pods("a").UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// managerLeaseAsks are writes of Leases of nodes, which forwarders do and weir-manager does not.
func managerLeaseAsks() []ask {
	var asks []ask
	for _, body := range []string{
		`{"spec":{"holderIdentity":"x"}}`, `{"spec":{"renewTime":"{now}"}}`,
		`{"spec":{"renewTime":"9999-12-31T00:00:00.000000Z"}}`,
		`{"spec":{"leaseDurationSeconds":2147483647}}`, `{"metadata":{"finalizers":["a.example.com/b"]}}`,
	} {
		asks = append(asks, ask{
			method: http.MethodPatch, path: nodeLeases + "/{node 2}", header: []string{mergePatch}, body: body,
		})
	}
	asks = append(asks, ask{method: http.MethodDelete, path: nodeLeases + "/{node 2}"},
		ask{method: http.MethodDelete, path: nodeLeases})
	for i := range asks {
		asks[i].as, asks[i].codes = "manager", []int{403, 422}
	}
	return asks
}

// managerAsks are what weir-manager needs for nothing.
func managerAsks() []ask {
	node, status, pod := "/api/v1/nodes/{node}", "/api/v1/nodes/{node}/status",
		"/api/v1/namespaces/a/pods/sky-managed/status"
	patch := func(path, body string) ask {
		return ask{method: http.MethodPatch, path: path, header: []string{strategicPatch}, body: body}
	}
	asks := []ask{
		patch(node, `{"metadata":{"labels":{"a":"b"}}}`),
		patch(node, `{"metadata":{"labels":{"`+contract.NodePoolLabel+`":"`+foreign+`"}}}`), patch(
			node, `{"metadata":{"annotations":{"a":"b"}}}`,
		),
		patch(node, `{"spec":{"unschedulable":true}}`),
		patch(node, `{"spec":{"taints":[{"key":"other","effect":"NoExecute"}]}}`), patch(
			node, `{"spec":{"taints":[{"key":"`+contract.CutOffTaint+`","value":"true","effect":"NoExecute"}]}}`,
		),
		patch(node, `{"metadata":{"finalizers":["a.example.com/b"]}}`), patch(
			node, `{"spec":{"podCIDR":"10.0.0.0/24"}}`,
		),
		patch(status, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`),
		patch(status, `{"status":{"addresses":[{"type":"InternalIP","address":"6.6.6.6"}]}}`), patch(
			status, `{"status":{"capacity":{"cpu":"1"}}}`,
		),
		patch(status, `{"metadata":{"labels":{"a":"b"}}}`), patch(status, `{"metadata":{"annotations":{"a":"b"}}}`),
		patch(pod, `{"status":{"podIP":"6.6.6.6","podIPs":[{"ip":"6.6.6.6"}]}}`),
		patch(pod, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), patch(
			pod, `{"status":{"phase":"Succeeded"}}`,
		),
		patch(pod, `{"status":{"hostIP":"6.6.6.6"}}`), patch(pod, `{"metadata":{"labels":{"app":"victim"}}}`), patch(
			pod, `{"metadata":{"annotations":{"`+contract.BindingAnnotation+`":"true"}}}`,
		),
		{
			method: http.MethodPost, path: "/api/v1/namespaces/kube-system/configmaps",
			body: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"mine"}}`,
		},
		{
			method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			body: `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"mine"},` +
				`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
				`"subjects":[{"kind":"ServiceAccount","name":"weir-manager","namespace":"kube-system"}]}`,
		},
		{
			method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-node-lease/rolebindings",
			body: `{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1",` +
				`"metadata":{"name":"weir-forwarder-mine"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",` +
				`"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"ServiceAccount","name":"weir-manager",` +
				`"namespace":"kube-system"}]}`,
		},
		{
			method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-node-lease/roles",
			body: `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"weir-forwarder-mine"},` +
				`"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
		},
		{path: "/api/v1/secrets"}, {path: "/api/v1/namespaces/a/secrets/canary"}, {
			method: http.MethodPost, path: "/api/v1/namespaces/kube-system/serviceaccounts/weir-manager/token",
			body: `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{}}`,
		},
		{
			method: http.MethodDelete, path: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/weir-forwarders",
		}, {
			method: http.MethodDelete, path: "/api/v1/namespaces/a/pods/sky-managed",
		},
		{method: http.MethodDelete, path: node},
	}
	for i := range asks {
		asks[i].as, asks[i].codes = "manager", []int{403, 422}
	}
	return asks
}
