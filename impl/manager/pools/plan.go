package pools

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// plan is how the hubs of a pool are told to share. Its zero value tells them nothing.
type plan struct {
	mode         string   // as in a Pool
	coordinators []string // https URLs
	applied      metav1.Condition
}

// planOf is the plan of a pool. Leader hubs are told of only if the NodePool asks for some: hubs that are told to read
// leaders, and have none, would all go to the cloud.
func planOf(p *nodepool.NodePool, own *poolv1.Pool) plan {
	c := metav1.Condition{Type: poolv1.ModeApplied, Status: metav1.ConditionFalse}
	switch {
	case own == nil:
		return plan{}
	case p == nil:
		c.Reason, c.Message = "NoNodePool", "hubs are told nothing: there is no NodePool of this name"
		return plan{applied: c}
	case own.Spec.Mode == poolv1.ModeLeaderHubs && wants(p.Spec) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Applied", "hubs read the leader hubs of "+
			contract.LeaderHubPrefix+p.Name
		return plan{mode: poolv1.ModeLeaderHubs, applied: c}
	case own.Spec.Mode == poolv1.ModeLeaderHubs:
		c.Reason, c.Message = "NoLeaderElection",
			"the mode is still Coordinator: the NodePool has to have enableLeaderElection and interConnectivity"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Applied", "hubs use the coordinator"
	}
	made := plan{mode: poolv1.ModeCoordinator, applied: c}
	if co := own.Spec.Coordinator; co != nil {
		made.coordinators = co.Servers
	}
	return made
}

// wire is the mode as hubs read it.
func (p plan) wire() string {
	switch p.mode {
	case poolv1.ModeCoordinator:
		return contract.ModeCoordinator
	case poolv1.ModeLeaderHubs:
		return contract.ModeLeaderHubs
	}
	return ""
}
