package runtime

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/image"
	"github.com/weir-edge/weir/sim/parts"
)

// Mode says what runs on the nodes of a pool.
type Mode string

// The modes of a pool.
const (
	Stock      Mode = "stock"       // nothing of Weir: clients reach the cloud through the link
	HubOnly    Mode = "hub-only"    // a hub on every node, no coordinator
	LeaderHubs Mode = "leader-hubs" // a hub on every node; the first ones read the cloud for all, named by flags
	Weir       Mode = "weir"        // a hub on every node and a coordinator
)

// Modes are all of them.
var Modes = []Mode{Stock, HubOnly, LeaderHubs, Weir}

// Topology says what a site consists of: one cloud and some pools.
type Topology struct {
	Pools []Pool
	Tools []string // command-line tools that clients need: "kubectl"
	// Controllers adds the stock kube-controller-manager and kube-scheduler.
	Controllers bool
	// Manager adds weir-manager, and what it needs in the cluster.
	Manager bool
	// Gate adds weir-gate, and tells of it pools with a coordinator whose hubs do not ask for their certificates. The
	// local runtime does it.
	Gate bool
	// GateFlags are those of weir-gate, beside what the testbed gives it; a []string is a flag that repeats. With
	// "way-in": true the hubs that lead keep a connection to it.
	GateFlags parts.Flags
	// Described: each pool with Weir is described by a NodePool, from which weir-manager makes leader-hub-<pool>. Needs
	// it, and root: see loopback.ReserveNodes.
	Described bool
	// Lifecycle adds the stock controllers that look after nodes and what belongs to them, and no others.
	Lifecycle bool
	// Endpoints adds the stock controllers that write Endpoints and EndpointSlices of Services, and no others.
	Endpoints bool
	// Unready: kube-apiserver can be made to say that it is not ready while it serves, see the interface Unready.
	Unready bool
	// Frames: kube-apiserver logs what crosses its connections, for package frames. The local runtime does it.
	Frames bool
	// Timers of controllers and kubelets; the zero value are those of stock Kubernetes.
	Timers cloud.Timers
	// Images adds a registry that has them, and a containerd on each node that pulls by the pool's link. The local runtime
	// does it.
	Images []image.Image
}

// Pool is a group of nodes behind one uplink.
type Pool struct {
	Name  string // of the NodePool; its nodes are <name>-1 to <name>-<Nodes>
	Nodes int
	Mode  Mode
	// Coordinators is the number of replicas of the coordinator in mode Weir: 1 or 3; 0 is 1.
	Coordinators int
	// LeaderHubs is how many leader hubs the pool's NodePool asks for, or in mode LeaderHubs how many of the first nodes
	// lead; 0 is 1. Otherwise it says nothing.
	LeaderHubs int
	Uplink     Link
	LAN        *Link // between hubs and coordinator; nil: they talk directly
	// Kubelets runs a hollow node on each node: the real kubelet, which registers the node and runs its pods. Without, the
	// testbed creates Node objects.
	Kubelets bool
	// Addresses are those that pods of hollow nodes get when their machine starts again; "" is SameAddresses.
	Addresses Addresses
	// Names: each hollow node has a kube-proxy, and pods of DNSImage are CoreDNS.
	Names bool
	// Zoneless leaves out the zone, which is otherwise named as the pool.
	Zoneless bool
	// Bare nodes are no machines: there is only the near end of the link, for the testbed's own clients. Mode must be
	// Stock.
	Bare bool
	// Gateless pools are told of no weir-gate.
	Gateless bool
	// Unlinked nodes reach the cloud without a link in between, which takes time of its own.
	Unlinked bool

	// Lives, if any, are those of the certificates that hubs ask for themselves. Without, the testbed makes them
	// beforehand.
	Lives *Lives

	// Enrols: hubs ask for the certificates of their pool, and weir-manager signs them by the pool's authority. They live
	// as long as usual.
	Enrols bool

	// EnrolsCoordinator: the first hubs ask for the certificates of the coordinators beside them, too.
	EnrolsCoordinator bool

	// Places: weir-manager runs the coordinator, as Pods of the pool's nodes.
	Places bool

	PoolScopeResources []string // "resource.version.group"; empty: the default of the commands
	// Unread pools have no clients: they relay Endpoints and EndpointSlices though nobody reads them.
	Unread           bool
	HubFlags         parts.Flags
	CoordinatorFlags parts.Flags

	// NoClock are nodes, by their names, whose machines have no battery clock, and CoordinatorMachine: what starts again
	// there is in 1970.
	NoClock []string

	// Binaries are commands of another build for this pool; what it does not name is that of the site.
	Binaries parts.Binaries
	// Programs are those of single parts, before Binaries. A link may lead to another program when its part starts again,
	// as an upgrade does.
	Programs map[PartID]string
}

// Addresses says what address a pod of a hollow node gets when its machine starts again.
type Addresses string

// What sim/controlplane/hollow-node can do.
const (
	SameAddresses    Addresses = "same"    // the first that is free
	OtherAddresses   Addresses = "other"   // one that no pod of the node had before
	SwappedAddresses Addresses = "swapped" // the one that the next pod of the node had before, by name
)

// CoordinatorMachine in Pool.NoClock is the machine of each coordinator.
const CoordinatorMachine = "coordinator"

// Lives are how long certificates live. weir-manager approves requests for them, and the testbed signs: no other signer
// makes them so short.
type Lives struct {
	Hub, Forwarder time.Duration
	// of those that the first hubs ask for, one for each replica that is beside it; 0: the testbed makes them.
	Coordinator time.Duration
}

// Link describes a link; its fields are those of link.Config.
type Link struct {
	Up, Down int64 // bits per second, 0 is unlimited
	RTT      time.Duration
	Burst    int64
}

// NodeNames are the names of a pool's nodes.
func (p Pool) NodeNames() []string {
	names := make([]string, 0, p.Nodes)
	for i := range p.Nodes {
		names = append(names, fmt.Sprintf("%s-%d", p.Name, i+1))
	}
	return names
}

// CoordinatorIDs names the parts that are the pool's coordinator: none, one, or its replicas.
func (p Pool) CoordinatorIDs() []PartID {
	switch {
	case p.Mode != Weir:
		return nil
	case p.Coordinators < 2:
		return []PartID{CoordinatorOf(p.Name)}
	}
	ids := make([]PartID, 0, p.Coordinators)
	for i := range p.Coordinators {
		ids = append(ids, ReplicaOf(p.Name, i+1))
	}
	return ids
}

// timers are those of controllers and kubelets.
func (t Topology) timers() cloud.Timers {
	if t.Timers == (cloud.Timers{}) {
		return cloud.StockTimers()
	}
	return t.Timers
}

// assets are the commands of the cloud's version that the topology needs.
func (t Topology) assets() []string {
	names := append([]string{cloud.KubeAPIServer}, t.Tools...)
	if t.Controllers {
		names = append(names, cloud.KubeControllerManager, cloud.KubeScheduler)
	}
	if t.Lifecycle || t.Endpoints {
		names = append(names, cloud.KubeControllerManager)
	}
	if slices.ContainsFunc(t.Pools, func(p Pool) bool { return p.Kubelets }) {
		names = append(names, cloud.HollowNode)
	}
	return names
}

// commands are those of Weir that the topology needs.
func (t Topology) commands() []string {
	var hub, coordinator bool
	for _, p := range t.Pools {
		hub = hub || p.Mode != Stock
		coordinator = coordinator || p.Mode == Weir
	}
	var names []string
	if hub {
		names = append(names, parts.HubCommand)
	}
	if coordinator {
		names = append(names, parts.CoordinatorCommand)
	}
	if t.Manager {
		names = append(names, parts.ManagerCommand)
	}
	if t.Gate {
		names = append(names, parts.GateCommand)
	}
	return names
}

// poolsOfKubelets are the pools of nodes that register themselves, by node.
func (t Topology) poolsOfKubelets() map[string]string {
	pools := map[string]string{}
	for _, p := range t.Pools {
		for _, name := range p.NodeNames() {
			if p.Kubelets {
				pools[name] = p.Name
			}
		}
	}
	return pools
}

// Validate tells what is wrong with a topology.
func (t Topology) Validate() error {
	if len(t.Pools) == 0 {
		return errors.New("topology: there is no pool")
	}
	if t.Described && !t.Manager {
		return errors.New("topology: pools are described: want weir-manager, which reads that")
	}
	for _, m := range t.Images {
		if err := m.Validate(); err != nil {
			return fmt.Errorf("topology: %w", err)
		}
	}
	seen := map[string]bool{}
	for _, p := range t.Pools {
		if problems := validation.IsDNS1123Label(p.Name); len(problems) > 0 {
			return fmt.Errorf("topology: pool %q: %s", p.Name, problems[0])
		}
		if p.Nodes < 1 || p.Nodes > maxNodes {
			return fmt.Errorf("topology: pool %s has %d nodes: want 1 to %d", p.Name, p.Nodes, maxNodes)
		}
		if p.Coordinators != 0 && (p.Mode != Weir || p.Coordinators != 1 && p.Coordinators != 3) {
			return fmt.Errorf("topology: pool %s of mode %s has %d coordinators: want 1 or 3 of mode %s, and none of others",
				p.Name, p.Mode, p.Coordinators, Weir)
		}
		if !slices.Contains(Modes, p.Mode) {
			return fmt.Errorf("topology: pool %s has mode %q: want one of %v", p.Name, p.Mode, Modes)
		}
		if p.Lives != nil && (p.Mode != Weir || !t.Manager || p.Lives.Hub <= 0 || p.Lives.Forwarder <= 0) {
			return fmt.Errorf("topology: pool %s of mode %s with lives %v: want mode %s, weir-manager, and more than 0", p.Name,
				p.Mode, *p.Lives, Weir)
		}
		if p.Lives != nil && p.Lives.Coordinator != 0 &&
			(p.Lives.Coordinator < 0 || p.Nodes < p.Coordinators || p.LAN != nil || p.Kubelets) {
			return fmt.Errorf("topology: pool %s with lives %v: a coordinator is beside a hub: want as many nodes as "+
				"coordinators, no LAN, and no kubelets", p.Name, *p.Lives)
		}
		if p.Enrols &&
			(p.Mode != Weir || !t.Manager || slices.ContainsFunc(t.Pools, func(o Pool) bool { return o.Lives != nil })) {
			return fmt.Errorf("topology: pool %s of mode %s enrols: want mode %s, weir-manager, and no pool with lives", p.Name,
				p.Mode, Weir)
		}
		if p.EnrolsCoordinator && (!p.Enrols || p.Nodes < p.Coordinators || p.LAN != nil || p.Kubelets) {
			return fmt.Errorf("topology: pool %s enrols its coordinator: want a pool that enrols, as many nodes as "+
				"coordinators, no LAN, and no kubelets", p.Name)
		}
		if p.Places && (!p.Enrols || p.EnrolsCoordinator || !t.Described || !t.Lifecycle || p.Nodes < p.Coordinators ||
			p.LAN != nil || p.Kubelets) {
			return fmt.Errorf("topology: the coordinator of pool %s is placed: want a pool that enrols and is described, "+
				"controllers of nodes, as many nodes as coordinators, no LAN, and no kubelets", p.Name)
		}
		if p.Names && !p.Kubelets {
			return fmt.Errorf("topology: pool %s leads to Services by their names: want kubelets", p.Name)
		}
		if p.Bare && p.Mode != Stock {
			return fmt.Errorf("topology: pool %s of mode %s is bare: want mode %s", p.Name, p.Mode, Stock)
		}
		for _, name := range append(p.NodeNames(), p.Name) {
			if seen[name] {
				return fmt.Errorf("topology: the name %q is used twice", name)
			}
			seen[name] = true
		}
	}
	return nil
}
