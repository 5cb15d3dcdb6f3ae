// Package layout makes of what a scenario file says the topology of a site, as sim/runtime brings it up. So the parser
// of files knows no laboratory.
//
// It only calculates: it runs nothing and starts no goroutine.
package layout

import (
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// Mode is how a pool runs with Weir.
func Mode(p scenario.Pool) runtime.Mode {
	switch {
	case p.Coordinators > 0:
		return runtime.Weir
	case p.LeaderHubs > 0:
		return runtime.LeaderHubs
	}
	return runtime.HubOnly
}

// Pool is a pool as the runtime takes it, in one of its modes: Stock to compare with, Mode for Weir.
func Pool(p scenario.Pool, mode runtime.Mode) runtime.Pool {
	r := runtime.Pool{
		Name: p.Name, Nodes: p.Nodes, Mode: mode,
		Uplink: runtime.Link{Up: int64(p.Uplink.Up), Down: int64(p.Uplink.Down), RTT: p.Uplink.RTT},
	}
	if mode == runtime.LeaderHubs {
		r.LeaderHubs = p.LeaderHubs
	}
	if mode == runtime.Weir {
		r.Coordinators = p.Coordinators
		if p.Reverse {
			r.HubFlags = parts.Flags{"pool-address": contract.PoolAddressReverse}
		}
		if p.Lives != nil {
			r.Lives = &runtime.Lives{Hub: p.Lives.Hub, Forwarder: p.Lives.Forwarder, Coordinator: p.Lives.Coordinator}
		}
		r.Enrols, r.LeaderHubs, r.NoClock, r.Places = p.Enrols, p.LeaderHubs, p.NoClock, p.Placed
	}
	return r
}

// WeirPools are the pools of a scenario with Weir. One has a link between nodes and coordinator if a fault cuts that.
func WeirPools(s *scenario.Scenario) []runtime.Pool {
	var pools []runtime.Pool
	for _, p := range s.Topology.Pools() {
		r := Pool(p, Mode(p))
		if s.NeedsLAN(p) {
			r.LAN = &runtime.Link{}
		}
		r.EnrolsCoordinator = s.RotatesIn(p) && !p.Placed
		pools = append(pools, r)
	}
	return pools
}

// WeirPool is the first of them.
func WeirPool(s *scenario.Scenario) runtime.Pool { return WeirPools(s)[0] }

// Watching is a site with the pools alone, as stock or with Weir, and with the tools that the clients need.
func Watching(s *scenario.Scenario, mode runtime.Mode) runtime.Topology {
	t := runtime.Topology{Tools: s.Tools(), Controllers: s.Topology.Controllers, Gate: s.Topology.Gate}
	with := WeirPools(s)
	for i, p := range s.Topology.Pools() {
		r := with[i]
		if mode == runtime.Stock {
			r = Pool(p, mode)
		}
		t.Pools, t.Manager = append(t.Pools, r), t.Manager || r.Lives != nil || r.Enrols
	}
	if t.Manager && s.Topology.Has(func(p scenario.Pool) bool { return p.Placed }) {
		t.Described, t.Lifecycle = true, true
	}
	return t
}
