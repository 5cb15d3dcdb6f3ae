package attack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/thief"
)

// enrolling is a pool whose hubs ask weir-manager for their certificates. The second node is the attacker's, and
// nothing runs on the fourth.
func enrolling() *place {
	return &place{
		name: "enrolling", mode: runtime.Weir, nodes: 4, hubs: []int{1, 2}, coordinators: 1, manager: true, enrols: true,
		flags: swift(),
	}
}

func stolenAttacks() []Attack {
	here := enrolling()
	certificate := func(number, goal, sent string, words ...string) Attack {
		return Attack{
			Number: number, Position: Member, Goal: goal, Sent: sent,
			Expected: "denied, for that reason", Control: "requests for what is its own are signed", place: here,
			play: func(ctx context.Context, x *scene) error { return x.forges(ctx, words...) },
		}
	}
	return []Attack{
		certificate(
			"76", "be another node, by a certificate of weir-manager",
			"requests for the hub of another node: as this node, as its hub, in its pool and at the cloud; with the other's "+
				"request as it was sent",
			"another node's, as the node", "another node's, as the hub", "another node's at the cloud", "another's public key",
		),
		certificate(
			"77", "have a bootstrap token give more than one certificate of one node",
			"a token of this node for another one, one of another node for this one, one that was used", "token",
		),
		certificate(
			"78", "have more in a certificate than is its own",
			"system:masters, the right to lead, another pool, a DNS name, ten years, the coordinator's",
			"an organization more", "the right to lead", "another pool's", "a name of a server", "ten years",
			"the coordinator's",
		),
		{
			Number: "79", Position: Holder, Goal: "go on after the Node was deleted",
			Sent: "what was granted to the node at the coordinator, at the hub beside it and at kube-apiserver, over new " +
				"connections and over " +
				"open connections; open feeds and " +
				"watches; a request for a certificate",
			Expected: "refused everywhere, and all streams end",
			Control:  "all of it was granted before, and the hub beside it goes on", place: here, play: deletedNode,
		},
	}
}

// forges judges requests for certificates that have some words in their names.
func (x *scene) forges(ctx context.Context, words ...string) error {
	all, err := thief.Forge(ctx, x.site, x.place.name, x.node(2), x.node(4))
	if err != nil {
		return err
	}
	for _, r := range all {
		switch {
		case r.Control:
			x.control(r.Wrong == "", "%s: signed %s", r.Name, r.Wrong)
		case slices.ContainsFunc(words, func(w string) bool { return strings.Contains(r.Name, w) }):
			x.judge(r.Wrong == "", "%s: %s", r.Name, brief(r.Said))
		}
	}
	return nil
}

func deletedNode(ctx context.Context, x *scene) error {
	node := x.node(2)
	var stolen *thief.Thief
	if err := until(ctx, "the hub to have its certificate", func() bool {
		t, err := thief.Of(ctx, x.site, x.place.name, node, x.node(1))
		stolen = t
		return err == nil
	}); err != nil {
		return err
	}
	defer stolen.Close()
	left := stolen.Left(ctx)
	x.control(len(left) == stolen.Granted() && len(left) >= leastGranted,
		"%d of %d requests and streams were granted before", len(left), stolen.Granted())
	if err := x.admin.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return err
	}
	refused := until(ctx, "all to be refused", func() bool {
		left = stolen.Left(ctx)
		return len(left) == 0
	}) == nil
	x.judge(refused, "%d of %d are refused %s", stolen.Granted()-len(left), stolen.Granted(), strings.Join(left, ", "))
	r, err := thief.AskDeleted(ctx, x.site, x.place.name, node)
	x.judge(r.Wrong == "", "%s: %s", r.Name, brief(r.Said))
	beside, failed := thief.Of(ctx, x.site, x.place.name, x.node(1))
	if failed == nil {
		x.control(len(beside.Left(ctx)) == beside.Granted(), "the hub beside it: %d are granted", beside.Granted())
		beside.Close()
	}
	if failed != nil {
		failed = fmt.Errorf("the hub beside it: %w", failed)
	}
	return errors.Join(err, failed)
}

// leastGranted is what a node is granted at the least: two requests and two streams at the coordinator, two and one at
// a hub, and at kube-apiserver.
const leastGranted = 9

// brief is what fits into a table.
func brief(s string) string { return s[:min(len(s), 160)] }
