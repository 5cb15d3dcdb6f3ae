package attack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/testca"
)

// Kinds of patches.
const (
	mergePatch     = "Content-Type: application/merge-patch+json"
	strategicPatch = "Content-Type: application/strategic-merge-patch+json"
	jsonPatch      = "Content-Type: application/json-patch+json"
	applyPatch     = "Content-Type: application/apply-patch+yaml"
)

// atCloud are attacks that go to kube-apiserver itself, with what is installed there for Weir.
func atCloud() *place {
	return &place{name: "sky", mode: runtime.HubOnly, nodes: 2, manager: true, flags: swift()}
}

const (
	leaseOfOwn     = nodeLeases + "/{node}"
	leaseElsewhere = nodeLeases + "/" + foreign + "-1"
)

func cloudAttacks() []Attack {
	here := atCloud()
	poolLabel := func(key, value string) string { return fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value) }
	annotate := func(key, value string) string { return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value) }
	beat := func(when string) string {
		return fmt.Sprintf(
			`{"metadata":{"annotations":{%q:%q}},"spec":{"renewTime":%q}}`, contract.DelegateHeartbeat,
			contract.Delegated, when,
		)
	}
	soon := func(d time.Duration) string { return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000Z") }
	ownStatus := ask{
		as: "kubelet", method: http.MethodPatch, path: "/api/v1/nodes/{node}/status", header: []string{strategicPatch},
		body: `{"status":{"conditions":[{"type":"Own","status":"True"}]}}`, codes: ok,
	}
	forwards := ask{
		as: "forwarder", method: http.MethodPatch, path: leaseOfOwn, header: []string{mergePatch}, body: beat("{now}"),
		codes: ok,
	}
	all := []Attack{
		{
			Number: "63", Position: Foreigner, Goal: "move a node into another pool, and so decide about its eviction",
			Sent: "a label or annotation of the pool on the own Node, as kubelet and as hub, by every kind of " +
				"patch, at the Node and at its status",
			Expected: "403 or 422, and the label stays",
			Control:  "the kubelet's own status", play: func(ctx context.Context, x *scene) error {
				return x.changeNode(ctx, func(n *corev1.Node) string { return n.Labels[contract.NodePoolLabel] }, []string{
					poolLabel(contract.NodePoolLabel, foreign), `{"metadata":{"labels":null}}`,
					poolLabel("APPS.openyurt.io/nodepool", foreign), /* another key: harmless, but tried */
					`{"metadata":{"labels":{"` + contract.NodePoolLabel + `":null}}}`,
				}, "/metadata/labels/apps.openyurt.io~1nodepool", foreign)
			}, controls: []ask{ownStatus},
		},
		{
			Number: "64", Position: Member, Goal: "have its own pods never evicted",
			Sent: "annotations binding, autonomy and autonomy-duration on the own Node, by every kind of patch; " +
				"binding on a pod",
			Expected: "403 or 422, and no annotation", Control: "the kubelet's own status",
			prepare: func(ctx context.Context, x *scene) error {
				_, err := x.pod(ctx, "sky-bound", x.node(1))
				return err
			},
			play: func(ctx context.Context, x *scene) error {
				err := x.changeNode(ctx, func(n *corev1.Node) string {
					return n.Annotations[contract.BindingAnnotation] + n.Annotations[contract.AutonomyAnnotation] +
						n.Annotations[contract.AutonomyDurationAnnotation]
				}, []string{
					annotate(contract.BindingAnnotation, "true"), annotate(contract.AutonomyAnnotation, "true"),
					annotate(contract.AutonomyDurationAnnotation, "0"),
				}, "/metadata/annotations/apps.openyurt.io~1binding", "true")
				for _, path := range []string{
					"/api/v1/namespaces/a/pods/sky-bound/status", "/api/v1/namespaces/a/pods/sky-bound",
				} {
					a := x.send(
						ctx,
						ask{
							as: "kubelet", at: cloudDoor, method: http.MethodPatch, path: path,
							header: []string{mergePatch}, body: annotate(contract.BindingAnnotation, "true"),
						},
					)
					p, e := x.admin.CoreV1().Pods("a").Get(ctx, "sky-bound", metav1.GetOptions{})
					err = errors.Join(err, e)
					x.judge(p.Annotations[contract.BindingAnnotation] == "", "%s: %s", path, a)
				}
				return err
			}, controls: []ask{ownStatus},
		},
		{
			Number: "65", Position: Member, Goal: "speak for nodes of other pools, or say more than a heartbeat",
			Sent: "as the forwarder: Lease of another pool's node, holder, duration, labels, finalizers, without " +
				"the annotation, DELETE, create, other namespaces",
			Expected: "403",
			Control:  "a heartbeat of a node of its pool", prepare: nodeLeasesExist,
			asks:     forwarderAsks("forwarder", beat("{now}")),
			controls: []ask{forwards},
		},
		{
			Number: "66", Position: Member, Goal: "write Leases under no policy",
			Sent: "65's writes with a certificate of the group weir:forwarders:<pool> alone", Expected: "403",
			Control: "a heartbeat with the right certificate",
			prepare: func(ctx context.Context, x *scene) error {
				for name, groups := range map[string][]string{
					"half a forwarder": {contract.ForwarderGroupPrefix + x.place.name}, "a node that forwards": {
						contract.ForwarderGroupPrefix + x.place.name, contract.NodesGroup,
					},
				} {
					user := contract.ForwarderUserPrefix + x.place.name
					if len(groups) > 1 {
						user = contract.NodeUserPrefix + x.node(2)
					}
					pair, err := x.vault.Cloud().CA().Issue(
						testca.Request{CommonName: user, Organizations: groups, Client: true},
					)
					if err != nil {
						return err
					}
					if err := x.certify(name, pair); err != nil {
						return err
					}
				}
				return nodeLeasesExist(ctx, x)
			},
			asks: append(forwarderAsks("half a forwarder", beat("{now}")),
				forwarderAsks("a node that forwards", beat("{now}"))...), controls: []ask{
				forwards,
			},
		},
		{
			Number: "67", Position: Member, Goal: "keep a dead node alive for ever, or a live one from being counted",
			Sent: "as the forwarder: renewTime in the year 9999, in a day, in ten minutes, in an hour with a managedFields " +
				"entry of the year 9999",
			Expected: "403 or 422, and no renewTime beyond five minutes",
			Control:  "a heartbeat of now", prepare: nodeLeasesExist, play: futureBeats(beat, soon),
			controls: []ask{forwards},
		},
		{
			Number: "68", Position: Member,
			Goal: "read or write what is another node's, or more than relays need, with the hub's certificate and the node's",
			Sent: "Secrets, the other Node, its Lease, its pods, a token of one of its pods, CSRs; as the hub what is its own " +
				"node's; as the node slices", Expected: "403",
			Control: "its own Node, and slices",
			prepare: func(ctx context.Context, x *scene) error {
				p, err := x.pod(ctx, "sky-other", x.node(2))
				if err != nil {
					return err
				}
				x.keep("uid", string(p.UID))
				return nodeLeasesExist(ctx, x)
			},
			asks: hubAsks(),
			play: func(ctx context.Context, x *scene) error {
				for _, as := range []string{"hub", "kubelet"} {
					x.try(
						ctx,
						ask{
							as: as, at: cloudDoor, method: http.MethodPost,
							path: "/api/v1/namespaces/a/serviceaccounts/reader/token",
							body: tokenRequest("sky-other", x.kept["uid"].(string), ""), codes: []int{403},
						},
					)
				}
				return nil
			},
			controls: []ask{
				{as: "kubelet", at: cloudDoor, path: "/api/v1/nodes/{node}", codes: ok},
				{as: "hub", at: cloudDoor, path: slices1, codes: ok},
			},
		},
		{
			Number: "69", Position: Holder, Goal: "redirect Services or own the cluster with weir-manager's token",
			Sent: "labels and spec of Nodes, podIP and Ready, other conditions, ConfigMaps, bindings to " +
				"cluster-admin, Secrets, policies",
			Expected: "403 or 422",
			Control:  "its own taint and its own condition", prepare: managerToken, asks: managerAsks(),
			controls: []ask{
				{
					as: "manager", at: cloudDoor, method: http.MethodPatch, path: "/api/v1/nodes/{node}",
					header: []string{strategicPatch},
					body:   `{"spec":{"taints":[{"key":"` + contract.CutOffTaint + `","value":"true","effect":"NoSchedule"}]}}`,
					codes:  ok,
				},
				{
					as: "manager", at: cloudDoor, method: http.MethodPatch, path: "/api/v1/nodes/{node}/status",
					header: []string{strategicPatch},
					body:   `{"status":{"conditions":[{"type":"` + contract.CutOffCondition + `","status":"False"}]}}`,
					codes:  ok,
				},
			},
		},
		{
			Number: "69b", Position: Holder, Goal: "keep dead nodes alive, or declare live ones dead, with weir-manager's token",
			Sent:     "PATCH and PUT of Leases of nodes: renewTime, holder, duration, finalizers; their deletion",
			Expected: "403", Control: "it reads them", prepare: func(ctx context.Context, x *scene) error {
				return errors.Join(managerToken(ctx, x), nodeLeasesExist(ctx, x))
			},
			asks:     managerLeaseAsks(),
			controls: []ask{{as: "manager", path: leaseOfOwn, codes: ok}},
		},
	}
	all = append(all, heardAttacks()...)
	for i := range all {
		all[i].place = here
		for _, asks := range [][]ask{all[i].asks, all[i].controls} {
			for j := range asks {
				asks[j].at = cloudDoor
			}
		}
	}
	return all
}
