package scenario

import (
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// Topology is what there is beside the cloud: a pool, and maybe more of them.
type Topology struct {
	Pool     Pool    // the first one, or the only one
	More     []Pool  // the others
	Beside   *Beside // only with eviction
	Zoneless bool

	Controllers bool          // the stock controllers run
	Gate        bool          // weir-gate is beside the kube-apiserver
	JoinEvery   time.Duration // between the starts of two hubs; 0: they start together
}

// Pools are all of them, in the order of the file.
func (t Topology) Pools() []Pool { return append([]Pool{t.Pool}, t.More...) }

// Has reports whether a pool is as it is asked for.
func (t Topology) Has(which func(Pool) bool) bool { return slices.ContainsFunc(t.Pools(), which) }

// MarshalYAML implements yaml.Marshaler.
func (t Topology) MarshalYAML() (any, error) {
	out := struct {
		Pool     *Pool   `yaml:"pool,omitempty"`
		Pools    []Pool  `yaml:"pools,omitempty"`
		Beside   *Beside `yaml:"beside,omitempty"`
		Zoneless bool    `yaml:"zoneless,omitempty"`

		Controllers bool          `yaml:"controllers,omitempty"`
		Gate        bool          `yaml:"gate,omitempty"`
		JoinEvery   time.Duration `yaml:"joinEvery,omitempty"`
	}{Beside: t.Beside, Zoneless: t.Zoneless, Controllers: t.Controllers, Gate: t.Gate,
		JoinEvery: t.JoinEvery}
	if len(t.More) == 0 {
		out.Pool = &t.Pool
	} else {
		out.Pools = t.Pools()
	}
	return out, nil
}

// Pool is a group of nodes behind one uplink.
type Pool struct {
	Name         string `yaml:"name"`
	Nodes        int    `yaml:"nodes"`
	Uplink       Uplink `yaml:"uplink"`
	Coordinators int    `yaml:"coordinators"`
	// that its NodePool asks for; without a coordinator, the first nodes, which lead.
	LeaderHubs int  `yaml:"leaderHubs,omitempty"`
	Reverse    bool `yaml:"reverse,omitempty"` // nodes accept no connection from their pool
	// nil: hubs have all certificates from the beginning, but for those that enrol.
	Lives  *Lives `yaml:"lives,omitempty"`
	Enrols bool   `yaml:"enrols,omitempty"` // hubs ask weir-manager for the certificates of their pool
	Placed bool   `yaml:"placed,omitempty"` // weir-manager runs the coordinator, as Pods on nodes of the pool

	NoClock []string `yaml:"noClock,omitempty"` // nodes, and "coordinator", whose machines have no battery clock
}

// Lives are how long certificates live that hubs ask for themselves.
type Lives struct {
	Hub         time.Duration `yaml:"hub"`
	Forwarder   time.Duration `yaml:"forwarder"`
	Coordinator time.Duration `yaml:"coordinator,omitempty"` // 0: coordinators have theirs from the beginning
}

// Uplink is the link between a pool and the cloud.
type Uplink struct {
	Up   Rate          `yaml:"up"`   // from the nodes to the cloud
	Down Rate          `yaml:"down"` // from the cloud to the nodes
	RTT  time.Duration `yaml:"rtt"`
}

// Link is the uplink as the runtime takes it.
func (u Uplink) Link() runtime.Link {
	return runtime.Link{Up: int64(u.Up), Down: int64(u.Down), RTT: u.RTT}
}

// Mode is how the pool runs with Weir.
func (p Pool) Mode() runtime.Mode {
	switch {
	case p.Coordinators > 0:
		return runtime.Weir
	case p.LeaderHubs > 0:
		return runtime.LeaderHubs
	}
	return runtime.HubOnly
}

// NodeNames are the pool's nodes, by number.
func (p Pool) NodeNames() []string { return p.RuntimePool(p.Mode()).NodeNames() }

// Leads reports whether somebody reads the cloud for all.
func (p Pool) Leads() bool { return p.Coordinators > 0 || p.LeaderHubs > 0 }

// Asks reports whether hubs ask for certificates, so that weir-manager runs.
func (p Pool) Asks() bool { return p.Lives != nil || p.Enrols }

// hasGate reports whether hubs read at weir-gate, if there is one.
func (p Pool) hasGate() bool { return p.Coordinators > 0 && !p.Asks() }

// RuntimePool is the pool as the runtime takes it, in one of its modes: Stock to compare with, Mode for Weir.
func (p Pool) RuntimePool(mode runtime.Mode) runtime.Pool {
	r := runtime.Pool{Name: p.Name, Nodes: p.Nodes, Mode: mode, Uplink: p.Uplink.Link()}
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

// PoolOf is the pool that a fault happens to; of a fault of the cloud it is the first one.
func (s *Scenario) PoolOf(f Fault) Pool {
	for _, p := range s.Topology.More {
		if p.Name == f.Pool {
			return p
		}
	}
	return s.Topology.Pool
}

// WeirPools are the pools with Weir as the runtime takes them. One has a link between nodes and coordinator if a fault
// cuts that.
func (s *Scenario) WeirPools() []runtime.Pool {
	var pools []runtime.Pool
	for _, p := range s.Topology.Pools() {
		r := p.RuntimePool(p.Mode())
		if s.happens(p, needsLAN) {
			r.LAN = &runtime.Link{}
		}
		r.EnrolsCoordinator = s.RotatesIn(p) && !p.Placed
		pools = append(pools, r)
	}
	return pools
}

// WeirPool is the first of them.
func (s *Scenario) WeirPool() runtime.Pool { return s.WeirPools()[0] }

// RuntimeTopology is a site with the pools alone, as stock or with Weir, and with the tools that the clients need.
func (s *Scenario) RuntimeTopology(mode runtime.Mode) runtime.Topology {
	t := runtime.Topology{Tools: s.Tools(), Controllers: s.Topology.Controllers, Gate: s.Topology.Gate}
	with := s.WeirPools()
	for i, p := range s.Topology.Pools() {
		r := with[i]
		if mode == runtime.Stock {
			r = p.RuntimePool(mode)
		}
		t.Pools, t.Manager = append(t.Pools, r), t.Manager || r.Lives != nil || r.Enrols
	}
	if t.Manager && s.Topology.Has(func(p Pool) bool { return p.Placed }) {
		t.Described, t.Lifecycle = true, true
	}
	return t
}
