package pools

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/digest"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// named is how many nodes a message names.
const named = 3

// works is the condition Ready of a Pool, by all else that its status says: the first thing that is wrong is the
// reason. Nodes that are not Ready cannot tell, and count for nothing.
func works(v *view, now time.Time) metav1.Condition {
	s := &v.own.Status
	c := metav1.Condition{Type: poolv1.Ready, Status: metav1.ConditionFalse}
	for _, of := range []string{poolv1.Described, poolv1.Heard, poolv1.ModeApplied, poolv1.CoordinatorPlaced} {
		if is := meta.FindStatusCondition(s.Conditions, of); is != nil && is.Status != metav1.ConditionTrue {
			c.Status, c.Reason, c.Message = is.Status, is.Reason, is.Message
			return c
		}
	}
	if fails, more := s.Failures(v.nodes, now); len(fails) > 0 {
		var says []string
		for _, f := range fails {
			says = append(says, f.Says())
		}
		c.Reason, c.Message = "EdgeFails", few(says, more, "; ")
		return c
	}
	if s.Leader == "" {
		c.Reason, c.Message = "NoLeader", "no hub of the pool has told that it leads"
		if v.plan.mode == poolv1.ModeLeaderHubs {
			c.Message = "none of its nodes may lead"
		}
		return c
	}
	var silent, apart []string
	shares := 0
	for i := range v.nodes {
		n := &v.nodes[i]
		if !is(n, corev1.NodeReady) {
			continue
		}
		h := s.Hub(n.Name)
		if h == nil {
			silent = append(silent, n.Name)
		} else if err := h.Digest().Sharing(now.Sub(h.Told.Time)); err != nil {
			apart = append(apart, fmt.Sprintf("%s: %v", n.Name, err))
		} else {
			shares++
		}
	}
	switch {
	case len(apart) > 0:
		c.Reason, c.Message = "HubsApart", few(apart, 0, "; ")
	case len(silent) > 0:
		c.Reason, c.Message = "HubsMissing", "no hub has told anything on "+few(silent, 0, ", ")
	default:
		c.Status, c.Reason = metav1.ConditionTrue, "Shares"
		c.Message = fmt.Sprintf("%d of %d nodes read inside the pool; %s leads", shares, len(v.nodes), s.Leader)
	}
	return c
}

// few are the first of all, and how many more there are, beside those that have no words.
func few(all []string, without int, between string) string {
	if more := len(all) + without - named; more > 0 {
		all = append(all[:min(named, len(all)):named], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, between)
}

// lapses is after which time the word of a hub is too old, of the one that spoke least recently; 0: none has spoken, or
// it is too late already.
func lapses(hubs []poolv1.Hub, now time.Time) (after time.Duration) {
	for _, h := range hubs {
		if left := digest.Lapsed - now.Sub(h.Told.Time); left > 0 && (after == 0 || left < after) {
			after = left
		}
	}
	return after
}
