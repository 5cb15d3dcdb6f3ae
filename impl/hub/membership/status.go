package membership

import (
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
)

// Status is what a hub knows of its pool.
type Status struct {
	Coordinator CoordinatorStatus
	Delegation  beat.DelegationStatus
	// this hub leads, its streams from the cloud are fresh, and what they brought arrived at the coordinator.
	Fresh bool
}

// CoordinatorStatus is what the hub knows of the coordinator.
type CoordinatorStatus struct {
	Server string `json:"server"` // the replica in use
	uplink.Judgement
	Ready bool `json:"ready"`
	// resources of --pool-scope-resources that only one of hub and coordinator has.
	Lacks     member.Differences `json:"lacks,omitzero"`
	Elections ElectionsStatus    `json:"elections"`
	Bytes     uplink.BytesStatus `json:"bytes"` // to and from all replicas
}

// ElectionsStatus counts elections since the start.
type ElectionsStatus struct {
	Tried int64 `json:"tried"`
	Won   int64 `json:"won"`
}

// Seen is where the pool sees the heartbeats of this node.
func (p *Pool) Seen() beat.InPool { return p.Mirror }

// Status tells how the pool is.
func (p *Pool) Status() *Status {
	return &Status{
		Coordinator: CoordinatorStatus{
			p.Coordinator.InUse().URL.Host, p.checker.Judgement(), p.view.Load().Ready, p.view.Load().Lacks,
			ElectionsStatus{p.requests.tried.Load(), p.requests.won.Load()}, p.Coordinator.Meter.Status(),
		},
		Delegation: p.Forwarding.Status(), Fresh: p.view.Load().Fresh,
	}
}
