package scenario

import (
	"fmt"
	"slices"
	"time"
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

// NodeNames are the pool's nodes, by number.
func (p Pool) NodeNames() []string {
	names := make([]string, 0, p.Nodes)
	for i := range p.Nodes {
		names = append(names, fmt.Sprintf("%s-%d", p.Name, i+1))
	}
	return names
}

// Leads reports whether somebody reads the cloud for all.
func (p Pool) Leads() bool { return p.Coordinators > 0 || p.LeaderHubs > 0 }

// Asks reports whether hubs ask for certificates, so that weir-manager runs.
func (p Pool) Asks() bool { return p.Lives != nil || p.Enrols }

// hasGate reports whether hubs read at weir-gate, if there is one.
func (p Pool) hasGate() bool { return p.Coordinators > 0 && !p.Asks() }

// PoolOf is the pool that a fault happens to; of a fault of the cloud it is the first one.
func (s *Scenario) PoolOf(f Fault) Pool {
	for _, p := range s.Topology.More {
		if p.Name == f.Pool {
			return p
		}
	}
	return s.Topology.Pool
}
