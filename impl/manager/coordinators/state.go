package coordinators

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// patience is how long it takes until the next node that is lost is given up; 0: none is.
func (s *stand) patience() (left time.Duration) {
	for _, r := range s.Replicas {
		n := s.node(r.Node)
		if n == nil || lost(n).IsZero() || s.Silent {
			continue
		}
		if d := max(replaceAfter(s.Own.Spec.Coordinator)-s.now.Sub(lost(n)), soon); left == 0 || d < left {
			left = d
		}
	}
	return left
}

// state is the condition of now.
func (s *stand) state(why string) metav1.Condition {
	c := metav1.Condition{Type: poolv1.CoordinatorPlaced, Status: metav1.ConditionFalse}
	var serving, missing []string
	for _, r := range s.Replicas {
		if r.Ready {
			serving = append(serving, r.Node)
		} else {
			missing = append(missing, r.Node)
		}
	}
	slices.Sort(serving)
	slices.Sort(missing)
	switch {
	case len(s.Replicas) == 0:
		c.Reason, c.Message = "NoNode", why
	case s.Silent && len(missing) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, "PoolSilent"
		c.Message = fmt.Sprintf("no node of the pool is heard: the coordinator is left where it is, on %s",
			list(append(serving, missing...)))
	case len(missing) > 0:
		c.Reason, c.Message = "NotReady", fmt.Sprintf("%d of %d are ready; not on %s", len(serving), len(s.Replicas),
			list(missing))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Running", "on "+list(serving)
	}
	if why != "" && len(s.Replicas) > 0 {
		c.Message += "; " + why
	}
	return c
}
