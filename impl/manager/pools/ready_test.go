package pools

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// TestReady: a pool is Ready while each hub that can tell says that it shares, and else says the first thing that is
// wrong, with the node.
func TestReady(t *testing.T) {
	hub := func(role digest.Role, cause string) string {
		return digest.Digest{Version: "v1", Role: role, Cause: cause, Age: time.Second}.Text()
	}
	for what, c := range map[string]struct {
		change func(v *view, l *Ledger)
		later  time.Duration
		reason string
		says   string
	}{
		"all share": {reason: "Shares", says: "3 of 3 nodes read inside the pool; a leads"},
		"ports are dropped": {
			change: func(_ *view, l *Ledger) { l.Hear("c", hub(digest.Pending, digest.Timeout)) },
			reason: "EdgeFails", says: "hub -> coordinator: c to the coordinator, port 10270: nothing comes back",
		},
		"a way fails": {
			change: func(_ *view, l *Ledger) {
				l.Hear("b", edges(digest.Edge{Way: digest.ToHub, Peer: "a", Port: 10269, Cause: digest.Stalls}))
			},
			reason: "EdgeFails", says: "hub -> hub: b to a, port 10269: small packets come through",
		},
		"many ways fail": {
			change: func(_ *view, l *Ledger) {
				var all []digest.Edge
				for i := range 9 {
					peer := fmt.Sprintf("fd00::%d", i+1)
					all = append(all, digest.Edge{Way: digest.ToCoordinator, Peer: peer, Port: 10270, Cause: digest.Mute})
				}
				l.Hear("b", edges(all...))
			},
			reason: "EdgeFails", says: "; and 6 more",
		},
		"the other end is off": {
			change: func(v *view, l *Ledger) {
				v.nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
				v.nodes[0].Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
				l.Hear("b", edges(digest.Edge{Way: digest.ToHub, Peer: v.nodes[0].Name, Port: 10269, Cause: digest.Timeout},
					digest.Edge{Way: digest.ToCoordinator, Peer: "10.0.0.1", Port: 10270, Cause: digest.Timeout}))
			},
			reason: "Shares", says: "of 3 nodes",
		},
		"a hub that is there does not serve": {
			change: func(_ *view, l *Ledger) { l.Hear("c", hub(digest.Pending, digest.Other)) },
			reason: "HubsApart", says: "c: its hub does not reach its pool, and uses the cloud alone: it answers, but not well",
		},
		"ports are dropped everywhere": {
			change: func(_ *view, l *Ledger) {
				for _, node := range []string{"a", "b", "c"} {
					l.Hear(node, hub(digest.Pending, digest.Timeout))
				}
			},
			reason: "EdgeFails", says: "port 10270",
		},
		"nobody leads": {
			change: func(_ *view, l *Ledger) { l.Hear("a", hub(digest.Follower, "")) },
			reason: "NoLeader", says: "no hub of the pool has told that it leads",
		},
		"a hub is old": {
			change: func(_ *view, l *Ledger) {
				l.Hear("b", digest.Digest{Role: digest.Follower, Age: 5 * time.Minute}.Text())
			},
			reason: "HubsApart", says: "b: what its hub holds is 5m0s old",
		},
		"a hub tells nothing any more": {later: 2*time.Hour + time.Minute, reason: "HubsApart", says: "nothing for 2h1m0s"},
		"a node without a hub": {
			change: func(v *view, _ *Ledger) { v.nodes = append(v.nodes, readyNode("d")) },
			reason: "HubsMissing", says: "no hub has told anything on d",
		},
		"nodes without a hub": {
			change: func(v *view, _ *Ledger) {
				for _, n := range []string{"d", "e", "f", "g", "h"} {
					v.nodes = append(v.nodes, readyNode(n))
				}
			},
			reason: "HubsMissing", says: "no hub has told anything on d, e, f, and 2 more",
		},
		"a node that is off tells nothing": {
			change: func(v *view, l *Ledger) {
				v.nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
				l.Hear("c", hub(digest.Pending, digest.Timeout))
			},
			reason: "Shares", says: "2 of 3 nodes",
		},
		"a node that is cut off tells the cloud nothing of its pool": {
			change: func(v *view, l *Ledger) {
				v.nodes[0].Status.Conditions = append(v.nodes[0].Status.Conditions,
					corev1.NodeCondition{Type: contract.CutOffCondition, Status: corev1.ConditionTrue})
				l.Hear("c", hub(digest.Follower, ""))
			},
			reason: "EdgeFails", says: "hub -> cloud: c to the cloud: it is heard through its pool alone",
		},
		"no NodePool":   {change: func(v *view, _ *Ledger) { v.nodepool = nil }, reason: "NoNodePool"},
		"a silent pool": {change: func(v *view, _ *Ledger) { v.seen.Silent = true }, reason: "PoolSilent"},
		"the mode is not told": {
			change: func(v *view, _ *Ledger) {
				v.plan.applied.Status, v.plan.applied.Reason = metav1.ConditionFalse, "NotYet"
			},
			reason: "NotYet",
		},
		"a coordinator without a place": {
			change: func(v *view, _ *Ledger) {
				v.placed.State = metav1.Condition{
					Type: poolv1.CoordinatorPlaced, Status: metav1.ConditionFalse, Reason: "NoNode", Message: "none has joined",
				}
			},
			reason: "NoNode", says: "none has joined",
		},
		"leader hubs, and none may lead": {
			change: func(v *view, _ *Ledger) { v.plan.mode = poolv1.ModeLeaderHubs }, reason: "NoLeader",
			says: "none of its nodes may lead",
		},
	} {
		v, l, clk := told()
		v.nodepool, v.plan.applied = &nodepool.NodePool{}, metav1.Condition{
			Type: poolv1.ModeApplied, Status: metav1.ConditionTrue, Reason: "Applied",
		}
		for i := range v.nodes {
			v.nodes[i] = readyNode(v.nodes[i].Name)
		}
		l.Hear("c", hub(digest.Follower, ""))
		if c.change != nil {
			c.change(v, l)
		}
		clk.Step(c.later)
		describe(v, clk.Now())
		is := meta.FindStatusCondition(v.own.Status.Conditions, poolv1.Ready)
		if is == nil || is.Reason != c.reason || !strings.Contains(is.Message, c.says) ||
			(is.Status == metav1.ConditionTrue) != (c.reason == "Shares") {
			t.Errorf("%s: %+v, want %s: %s", what, is, c.reason, c.says)
		}
	}
}

// edges is what a hub tells that follows, and of which these ways fail.
func edges(all ...digest.Edge) string {
	return digest.Digest{Version: "v1", Role: digest.Follower, Age: time.Second, Edges: digest.EdgesOf(all)}.Text()
}

func readyNode(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}
}

// TestLapses: somebody looks again when the word of the hub is too old that spoke least recently.
func TestLapses(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	hub := func(ago time.Duration) poolv1.Hub { return poolv1.Hub{Told: metav1.Time{Time: now.Add(-ago)}} }
	for _, c := range []struct {
		hubs []poolv1.Hub
		want time.Duration
	}{
		{nil, 0},
		{[]poolv1.Hub{hub(0)}, digest.Lapsed},
		{[]poolv1.Hub{hub(time.Minute), hub(time.Hour), hub(0)}, digest.Lapsed - time.Hour},
		{[]poolv1.Hub{hub(3 * time.Hour), hub(time.Minute)}, digest.Lapsed - time.Minute},
		{[]poolv1.Hub{hub(3 * time.Hour)}, 0},
	} {
		if got := lapses(c.hubs, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.hubs, got, c.want)
		}
	}
}
