package pools

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// longText bounds the message of a condition: kube-apiserver refuses a status with a longer one than 32 KiB as a whole,
// and some of it is the word of nodes.
const longText = 2000

// set puts a condition into a status, and reports whether its state changed.
func set(all *[]metav1.Condition, c metav1.Condition, now time.Time) bool {
	c.Message = strings.ToValidUTF8(c.Message[:min(len(c.Message), longText)], "")
	was := meta.FindStatusCondition(*all, c.Type)
	changed := was == nil || was.Status != c.Status || was.Reason != c.Reason
	c.LastTransitionTime = metav1.Time{Time: now.Truncate(time.Second)} // it counts only when the status changes
	meta.SetStatusCondition(all, c)
	return changed
}

// setOrRemove puts a condition of a type into a status, or removes what is there if there is none.
func setOrRemove(all *[]metav1.Condition, kind string, c metav1.Condition, now time.Time) {
	if c.Type == "" {
		meta.RemoveStatusCondition(all, kind)
		return
	}
	set(all, c, now)
}

// describe writes into the status of a Pool what is known.
func describe(v *view, now time.Time) {
	s := &v.own.Status
	s.ObservedGeneration, s.Mode, s.Members = v.own.Generation, v.plan.mode, int32(len(v.nodes)) //nolint:gosec // of nodes
	s.Coordinators = slices.Clone(v.plan.coordinators)
	s.Replicas, s.Cluster, s.Placements = v.placed.Replicas, v.placed.Cluster, max(s.Placements, v.placed.Placements)
	tell(s, v)
	s.Leader = ""
	switch v.plan.mode {
	case poolv1.ModeCoordinator:
		s.Leader = leads(s.Hubs)
	case poolv1.ModeLeaderHubs:
		names := []string{}
		for _, l := range v.nodepool.Status.LeaderEndpoints {
			names = append(names, l.NodeName)
		}
		s.Leader = strings.Join(names, ",")
	}
	if !v.seen.Unsure {
		s.Heard, s.CutOff, s.SilentSince = *number(v.seen.Heard), *number(v.seen.CutOff), since(v.seen)
	}
	set(&s.Conditions, described(v), now)
	set(&s.Conditions, v.plan.applied, now)
	set(&s.Conditions, heard(v), now)
	set(&s.Conditions, current(v.nodes), now)
	if v.nodepool != nil {
		set(&s.Conditions, v.scope.condition(), now)
	}
	setOrRemove(&s.Conditions, poolv1.CoordinatorPlaced, v.placed.State, now)
	setOrRemove(&s.Conditions, poolv1.ReachAccepted, reachOf(v.own).condition(), now)
	set(&s.Conditions, works(v, now), now)
}

// described is the condition Described.
func described(v *view) metav1.Condition {
	c := metav1.Condition{
		Type: poolv1.Described, Status: metav1.ConditionTrue, Reason: "NodePool", Message: "the NodePool of this name",
	}
	if v.nodepool == nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "NoNodePool",
			"there is no NodePool of this name: only whenSilent is used"
	}
	return c
}

// heard is the condition Heard.
func heard(v *view) metav1.Condition {
	c := metav1.Condition{Type: poolv1.Heard, Status: metav1.ConditionTrue}
	switch {
	case len(v.nodes) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NoNodes",
			fmt.Sprintf("no Node has the label %s=%s", contract.NodePoolLabel, v.name)
	case v.seen.Silent && v.seen.Unsure:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "NotYet", "weir-manager has just begun to listen"
	case v.seen.Silent:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "PoolSilent",
			"no node of the pool is heard: it is cut off, or without power"
	case v.seen.CutOff > 0:
		c.Reason, c.Message = "SomeCutOff", fmt.Sprintf("%d nodes are heard through the pool alone", v.seen.CutOff)
	default:
		c.Reason, c.Message = "Heard", "nodes of the pool are heard"
	}
	return c
}

func number(n int) *int32 {
	i := int32(n) //nolint:gosec // of nodes
	return &i
}

func since(s Seen) *metav1.Time {
	if !s.Silent || s.Since.IsZero() {
		return nil
	}
	return &metav1.Time{Time: s.Since.Truncate(time.Second)}
}
