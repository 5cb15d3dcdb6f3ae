package layout

import (
	"fmt"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/image"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

const (
	imageName = "registry.weir.test/weir/app:v1"
	// fastBy is how much faster the fast timers are, all in proportion. What Weir itself takes at most until a heartbeat
	// is delegated does not become shorter with them (package heartbeat), so they may not be much faster.
	fastBy = 2.5
)

// Timers are those that a name means.
func Timers(n scenario.TimersName) cloud.Timers {
	if n == scenario.FastTimers {
		return cloud.StockTimers().Faster(fastBy)
	}
	return cloud.StockTimers()
}

// Eviction is a site of an eviction scenario: the pool in one of its modes, and the healthy one beside it.
func Eviction(s *scenario.Scenario, e *scenario.Eviction, mode runtime.Mode) runtime.Topology {
	pool := Pool(s.Topology.Pool, mode)
	if mode == runtime.Weir {
		pool = WeirPool(s)
	}
	beside := runtime.Pool{
		Name: s.Topology.Beside.Name, Nodes: s.Topology.Beside.Nodes, Mode: runtime.Stock, Unlinked: true,
	}
	pool.Kubelets, beside.Kubelets = true, true
	pool.Zoneless, beside.Zoneless = s.Topology.Zoneless, s.Topology.Zoneless
	return runtime.Topology{
		Pools: []runtime.Pool{pool, beside}, Controllers: true, Manager: mode == runtime.Weir,
		Timers: Timers(e.Timers), Frames: e.Components, Unready: s.Unready(),
	}
}

// Autonomy is a site of a scenario with autonomy, in one of its modes.
func Autonomy(s *scenario.Scenario, a *scenario.Autonomy, mode runtime.Mode) runtime.Topology {
	pool := Pool(s.Topology.Pool, mode)
	if mode != runtime.Stock {
		pool = WeirPool(s)
	}
	pool.Kubelets, pool.Addresses, pool.Names = true, runtime.Addresses(a.Addresses), a.Names
	pool.Unread = a.Services > 0 // so that relays are there before the clients, as long before a cut as possible
	return runtime.Topology{Pools: []runtime.Pool{pool}, Endpoints: a.Services > 0}
}

// Image is what nodes pull in a scenario with images.
func Image(s *scenario.Scenario, of *scenario.Images) image.Image {
	m := image.Image{Name: imageName, Seed: s.Seed}
	for _, size := range of.Layers {
		m.Layers = append(m.Layers, int64(size))
	}
	return m
}

// Images is a site of such a scenario, in one of its modes. Its nodes have kubelets, for their heartbeats.
func Images(s *scenario.Scenario, of *scenario.Images, mode runtime.Mode) runtime.Topology {
	pool := Pool(s.Topology.Pool, mode)
	pool.Kubelets = true
	asks := mode != runtime.Stock && s.Topology.Pool.Asks()
	return runtime.Topology{Pools: []runtime.Pool{pool}, Images: []image.Image{Image(s, of)}, Manager: asks}
}

// Crowd is a site of a scenario with a crowd, in one of its modes: its pools, of which only the nodes that run are
// there.
func Crowd(s *scenario.Scenario, c *scenario.Crowd, mode runtime.Mode) runtime.Topology {
	asks := mode != runtime.Stock && s.Topology.Pool.Asks()
	t := runtime.Topology{Manager: asks, Described: asks}
	for i := range c.Pools {
		p := Pool(s.Topology.Pool, mode)
		p.Name, p.Nodes, p.Bare = fmt.Sprintf("%s-%03d", p.Name, i+1), c.Run, mode == runtime.Stock
		t.Pools = append(t.Pools, p)
	}
	return t
}
