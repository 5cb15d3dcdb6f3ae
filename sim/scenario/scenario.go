package scenario

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/node"
	"github.com/weir-edge/weir/sim/runtime"
)

// Scenario is one scenario file. What is optional and absent has its default.
type Scenario struct {
	File string `yaml:"-"` // it was read from

	Name         string        `yaml:"name"`
	Description  string        `yaml:"description,omitempty"`
	Seed         int64         `yaml:"seed"`
	Topology     Topology      `yaml:"topology"`
	Workload     Workload      `yaml:"workload,omitempty"` // absent in some scenarios with eviction
	Clients      []ClientKind  `yaml:"clients,flow"`
	Compare      []string      `yaml:"compare,flow"`       // the other ways that carry the same changes: report.WayReference, …
	Eviction     *Eviction     `yaml:"eviction,omitempty"` // nil: pods, kubelets and controllers play no part
	Autonomy     *Autonomy     `yaml:"autonomy,omitempty"` // nil likewise
	Faults       []Fault       `yaml:"faults,omitempty"`
	Batches      bool          `yaml:"-"` // the judge takes what a relay sends after 410, see invariant.Rules
	Expectations []Expectation `yaml:"expectations"`
}

// The words of the field batches.
const (
	batchesAllowed = "allowed"
	batchesRefused = "refused"
)

// Topology is what there is beside the cloud.
type Topology struct {
	Pool     Pool    `yaml:"pool"`
	Beside   *Beside `yaml:"beside,omitempty"` // only with eviction
	Zoneless bool    `yaml:"zoneless,omitempty"`
}

// Pool is a group of nodes behind one uplink.
type Pool struct {
	Name         string `yaml:"name"`
	Nodes        int    `yaml:"nodes"`
	Uplink       Uplink `yaml:"uplink"`
	Coordinators int    `yaml:"coordinators"`
	Reverse      bool   `yaml:"reverse,omitempty"` // nodes accept no connection from their pool
	Lives        *Lives `yaml:"lives,omitempty"`   // nil: hubs have all certificates from the beginning, but for those that enrol
	Enrols       bool   `yaml:"enrols,omitempty"`  // hubs ask weir-manager for the certificates of their pool
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

// Workload is what the cloud holds and how it changes.
type Workload struct {
	Services         int           `yaml:"services"`
	Endpoints        int           `yaml:"endpoints"`       // of each Service
	Quiet            time.Duration `yaml:"quiet,omitempty"` // without changes, once all caches are there
	Changes          int           `yaml:"changes"`         // of one endpoint each
	ChangesPerSecond float64       `yaml:"changesPerSecond,omitempty"`
}

// ClientKind is a kind of client that runs on every node.
type ClientKind string

// The kinds of clients.
const (
	KubeProxy ClientKind = "kube-proxy" // EndpointSlices as kube-proxy watches them
	CoreDNS   ClientKind = "coredns"    // EndpointSlices as CoreDNS watches them
	JSON      ClientKind = "json"       // a client that knows no protobuf
	Kubectl   ClientKind = "kubectl"    // the tool itself
)

// clientKinds are all of them.
var clientKinds = [...]ClientKind{KubeProxy, CoreDNS, JSON, Kubectl}

// Identity is whose token such a client has, as runtime.Site calls it.
func (k ClientKind) Identity() string {
	if k == JSON {
		return "json-client"
	}
	return string(k)
}

// Link is the uplink as the runtime takes it.
func (u Uplink) Link() runtime.Link {
	return runtime.Link{Up: int64(u.Up), Down: int64(u.Down), RTT: u.RTT}
}

// Mode is how the pool runs with Weir.
func (p Pool) Mode() runtime.Mode {
	if p.Coordinators == 0 {
		return runtime.HubOnly
	}
	return runtime.Weir
}

// Asks tells whether hubs ask for certificates, so that weir-manager runs.
func (p Pool) Asks() bool { return p.Lives != nil || p.Enrols }

// RuntimePool is the pool as the runtime takes it, in one of its modes: Stock to compare with, Mode for Weir.
func (p Pool) RuntimePool(mode runtime.Mode) runtime.Pool {
	r := runtime.Pool{Name: p.Name, Nodes: p.Nodes, Mode: mode, Uplink: p.Uplink.Link()}
	if mode == runtime.Weir {
		r.Coordinators = p.Coordinators
		if p.Reverse {
			r.HubFlags = node.Flags{"pool-address": contract.PoolAddressReverse}
		}
		if p.Lives != nil {
			r.Lives = &runtime.Lives{Hub: p.Lives.Hub, Forwarder: p.Lives.Forwarder, Coordinator: p.Lives.Coordinator}
		}
		r.Enrols = p.Enrols
	}
	return r
}

// WeirPool is the pool with Weir as the runtime takes it. It has a link between nodes and coordinator if a fault cuts that.
func (s *Scenario) WeirPool() runtime.Pool {
	p := s.Topology.Pool.RuntimePool(s.Topology.Pool.Mode())
	if s.cutsLAN() {
		p.LAN = &runtime.Link{}
	}
	p.EnrolsCoordinator = s.Rotates()
	return p
}

// RuntimeTopology is a site with the pool alone, in one of its modes, and with the tools that the clients need.
func (s *Scenario) RuntimeTopology(mode runtime.Mode) runtime.Topology {
	p := s.Topology.Pool.RuntimePool(mode)
	if mode == s.Topology.Pool.Mode() {
		p = s.WeirPool()
	}
	return runtime.Topology{Pools: []runtime.Pool{p}, Tools: s.Tools(), Manager: p.Lives != nil || p.Enrols}
}

// Tools are the command-line tools that the clients need.
func (s *Scenario) Tools() []string {
	if slices.Contains(s.Clients, Kubectl) {
		return []string{"kubectl"}
	}
	return nil
}

// YAML writes s as a file that Parse reads back.
func (s *Scenario) YAML() ([]byte, error) {
	out := struct {
		*Scenario `yaml:",inline"`
		Batches   string `yaml:"batches"`
	}{s, batchesRefused}
	if s.Batches {
		out.Batches = batchesAllowed
	}
	data, err := yaml.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write scenario %s: %w", s.Name, err)
	}
	return data, nil
}
