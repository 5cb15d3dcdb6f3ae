package runtime

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc/loopback"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	// maxNodes leaves the upper addresses of a block to coordinators.
	maxNodes = 200
	// coordinatorAddress is the place of the first coordinator in its pool's block.
	coordinatorAddress = 250
)

// Classes of the traffic between a hub and the cloud, each with its own connections.
const (
	ClassPool      = "pool"      // feeds of relays
	ClassNode      = "node"      // proxied requests
	ClassHeartbeat = "heartbeat" // Leases of nodes
	ClassControl   = "control"   // probes and access reviews
	ClassImage     = "image"     // pulls of images, by containerd alone
)

// hubPair is the file of a node's certificate and its key, which its hub has too.
const hubPair = "cloud.pem"

// classLAN is what all traffic on a pool's own network is counted under.
const classLAN = "lan"

// localPool is a pool of a localSite.
type localPool struct {
	Pool
	site      *localSite
	block     addresses
	pods      *loopback.Block // of hollow nodes; nil: there are none
	uplink    *link.Pool
	lan       *link.Pool
	authority *testca.Authority // of the pool: its coordinator, and its hubs among each other
	viewer    *http.Transport
	hubs      map[string]hubFiles // by node
	placed    *placed             // nil: weir-manager runs no coordinator of it
}

// addPool sets up a pool: links, Node objects, certificates, configuration files.
func (s *localSite) addPool(ctx context.Context, p Pool, block addresses) error {
	x := &localPool{Pool: p, site: s, block: block, hubs: map[string]hubFiles{}}
	s.pools = append(s.pools, x)
	var err error
	if x.uplink, err = newLink(p.Name, p.Uplink, s.logger); err != nil {
		return err
	}
	if p.LAN != nil {
		if x.lan, err = newLink(p.Name+"-lan", *p.LAN, s.logger); err != nil {
			return err
		}
	}
	if x.authority, err = testca.NewPoolAuthority(p.Name); err != nil {
		return err
	}
	if s.topology.Manager && p.Mode == Weir {
		if err := x.entrust(ctx); err != nil {
			return err
		}
	}
	switch {
	case p.Places:
		err = x.addPlaced()
	case p.Mode == Weir:
		err = x.addCoordinators()
	}
	if err != nil {
		return err
	}
	nodes := make([]cloud.Node, 0, p.Nodes)
	for i, name := range p.NodeNames() {
		address, err := block.Addr(i + 1)
		if err != nil {
			return err
		}
		if p.Mode == Stock {
			s.endpoints[name] = x.stockEndpoint(name, address)
		} else if err := x.addHub(i, name, address); err != nil {
			return err
		}
		if p.Places {
			if err := x.addAgent(name, address); err != nil {
				return err
			}
		}
		if s.registry != nil && !p.Bare {
			if err := x.addContainerd(name, address); err != nil {
				return err
			}
		}
		switch {
		case p.Bare:
		case p.Kubelets:
			err = s.ground.machine(ctx, x, i, name, address)
		default:
			n := cloud.Node{Name: name, Pool: p.Name, Address: address}
			if x.enrolsCoordinator(i) {
				n.Coordinator = strconv.Itoa(i + 1)
				n.Beside, err = x.coordinatorHost(i)
			}
			nodes = append(nodes, n)
		}
		if err != nil {
			return err
		}
	}
	if p.Mode != Stock && !x.asks() {
		if err := s.cloud.GrantHubs(ctx, p.Name, p.NodeNames()...); err != nil {
			return err
		}
	}
	return s.cloud.CreateNodes(ctx, nodes...)
}

// asks reports whether hubs of the pool begin without certificates, and weir-manager grants what they may. Other hubs
// have asked before, and the testbed's notary grants what else they ask.
func (x *localPool) asks() bool { return x.Lives != nil || x.Enrols }

func newLink(name string, c Link, logger *slog.Logger) (*link.Pool, error) {
	return link.NewPool(link.Config{Name: name, Up: c.Up, Down: c.Down, Burst: c.Burst, RTT: c.RTT, Logger: logger})
}

// stockEndpoint opens the near end of the link for a class of clients when the first one asks.
func (x *localPool) stockEndpoint(name, address string) func(class string) (Endpoint, error) {
	var mu sync.Mutex
	known := map[string]Endpoint{}
	return func(class string) (Endpoint, error) {
		mu.Lock()
		defer mu.Unlock()
		if e, ok := known[class]; ok {
			return e, nil
		}
		url, err := x.cloudURL(name, address, class)
		if err != nil {
			return Endpoint{}, err
		}
		known[class] = Endpoint{URL: url, CAPEM: x.site.cloud.CA().CertPEM()}
		return known[class], nil
	}
}

// cloudURL opens the near end of the link for one class of a node's traffic.
func (x *localPool) cloudURL(name, address, class string) (string, error) {
	if x.Unlinked {
		return "https://" + x.site.cloud.Addr(), nil
	}
	p, err := x.uplink.Proxy(name, class, x.site.ground.near(address), x.site.cloud.Addr())
	if err != nil {
		return "", err
	}
	return "https://" + p.Addr(), nil
}

// coordinatorHost is the address of a coordinator, the first is 0.
func (x *localPool) coordinatorHost(i int) (string, error) {
	return x.block.Addr(coordinatorAddress + i)
}

// addCoordinators prepares the coordinator, or its replicas.
func (x *localPool) addCoordinators() error {
	if err := x.newViewer(); err != nil {
		return err
	}
	ids := x.CoordinatorIDs()
	for i, id := range ids {
		c := parts.CoordinatorConfig{
			NodePool: x.Name, SecurePort: contract.CoordinatorPort, PoolScopeResources: x.scope(),
			Flags: x.CoordinatorFlags,
		}
		if len(ids) > 1 {
			c.Name = strconv.Itoa(i + 1)
			for n := range ids {
				host, err := x.coordinatorHost(n)
				if err != nil {
					return err
				}
				name := strconv.Itoa(n + 1)
				c.InitialCluster = append(c.InitialCluster,
					name+"=https://"+net.JoinHostPort(host, strconv.Itoa(contract.PeerPort)))
				c.ReplicaServers = append(c.ReplicaServers,
					name+"=https://"+net.JoinHostPort(host, strconv.Itoa(contract.CoordinatorPort)))
			}
		}
		if err := x.addCoordinator(id, i, c); err != nil {
			return err
		}
	}
	return nil
}

func (x *localPool) addCoordinator(id PartID, i int, c parts.CoordinatorConfig) (err error) {
	if c.BindAddress, err = x.coordinatorHost(i); err != nil {
		return err
	}
	folder := strings.Replace(string(id), "/"+x.Name, "", 1) // below the pool's
	dir, err := x.site.spawner.Scratch(x.Name, folder)
	if err != nil {
		return err
	}
	if c.DataDir, err = x.site.spawner.Scratch(x.Name, folder, "data"); err != nil {
		return err
	}
	c.CertificatesDir = filepath.Join(dir, "certificates")
	if x.enrolsCoordinator(i) {
		if c.CertificatesDir, err = x.certificatesDir(i); err != nil {
			return err
		}
	}
	if !x.EnrolsCoordinator { // else its hub writes it
		if _, err = testca.WriteFile(c.CertificatesDir, trust.CAFile, x.authority.CertPEM()); err != nil {
			return err
		}
	}
	if !x.enrolsCoordinator(i) {
		if err = x.issueCoordinator(c); err != nil {
			return err
		}
	}
	part, err := x.site.ground.coordinator(parts.Launch{
		Spawner: x.site.spawner,
		Name:    strings.TrimSpace("coordinator "+c.Name) + " of " + x.Name,
		Path:    x.command(id, parts.CoordinatorCommand, slices.Contains(x.NoClock, CoordinatorMachine)),
		NoClock: slices.Contains(x.NoClock, CoordinatorMachine),
		Dir:     dir,
		LogFile: filepath.Join(x.site.logDir, strings.ReplaceAll(string(id), "/", "-")+".log"),
		Data:    c.DataDir,
	}, c, x.viewer)
	if err != nil {
		return err
	}
	x.site.addPart(id, part)
	return nil
}

// command is the path of one of Weir's commands for a part of this pool.
func (x *localPool) command(id PartID, name string, noClock bool) string {
	if noClock {
		return x.site.timeless[name]
	}
	return cmp.Or(x.Programs[id], x.Binaries[name], x.site.commands[name])
}

// findTimeless builds the commands of machines without a clock, if there are any.
func (s *localSite) findTimeless(ctx context.Context, t Topology, progress func(string)) (err error) {
	var commands []string
	for _, p := range t.Pools {
		for _, machine := range p.NoClock {
			commands = append(commands, map[bool]string{
				false: parts.HubCommand, true: parts.CoordinatorCommand,
			}[machine == CoordinatorMachine])
		}
	}
	if len(commands) == 0 {
		return nil
	}
	slices.Sort(commands)
	s.timeless, err = parts.FindTimeless(ctx, s.spawner, progress, slices.Compact(commands)...)
	return err
}

// enrolsCoordinator reports whether a coordinator is beside the hub of node i, which asks for its certificates.
func (x *localPool) enrolsCoordinator(i int) bool {
	return (x.EnrolsCoordinator || x.Lives != nil && x.Lives.Coordinator > 0) && i < len(x.CoordinatorIDs())
}

// certificatesDir is where that hub keeps them.
func (x *localPool) certificatesDir(i int) (string, error) {
	return x.site.spawner.Scratch(x.Name, fmt.Sprint("certificates-", i+1))
}

// issueCoordinator makes the certificates of a coordinator for which nobody asks.
func (x *localPool) issueCoordinator(c parts.CoordinatorConfig) error {
	hosts := []string{c.BindAddress, "localhost"}
	if x.lan != nil { // then hubs reach it by the near ends of that link
		for i := range x.Nodes {
			address, err := x.block.Addr(i + 1)
			if err != nil {
				return err
			}
			host, _, err := net.SplitHostPort(x.site.ground.near(address))
			if err != nil {
				return err
			}
			hosts = append(hosts, host)
		}
	}
	err := x.give(c.CertificatesDir, weirpki.Coordinator, weirpki.Subject{Pool: x.Name, Hosts: hosts})
	if err == nil && c.Name != "" {
		err = x.give(c.CertificatesDir, weirpki.Replica,
			weirpki.Subject{Pool: x.Name, Name: c.Name, Hosts: []string{c.BindAddress}})
	}
	return err
}

// give issues a certificate of the pool to those who would have asked weir-manager for it.
func (x *localPool) give(dir string, k weirpki.Kind, s weirpki.Subject) error {
	pair, err := x.authority.IssueTo(k, s, 0)
	if err != nil {
		return err
	}
	return testca.Keep(dir, k, pair)
}

// entrust gives the pool's authority to weir-manager, which signs by it: certificates where hubs ask for them, and what
// it has renewed of the heartbeats of each pool.
func (x *localPool) entrust(ctx context.Context) error {
	files, err := x.authority.Kept()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pool-" + x.Name}, Data: files}
	_, err = x.site.cloud.Client().CoreV1().Secrets(contract.KeyNamespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

func (x *localPool) addHub(i int, name, address string) error {
	dir, err := x.site.spawner.Scratch(x.Name, name)
	if err != nil {
		return err
	}
	data, err := x.site.spawner.Scratch(x.Name, name, "data")
	if err != nil {
		return err
	}
	c := parts.HubConfig{
		NodeName: name, NodePool: x.Name, DataDir: data,
		BindAddress: address, SecurePort: contract.HubSecurePort,
		Health:             net.JoinHostPort(address, strconv.Itoa(contract.HubHealthPort)),
		PoolScopeResources: x.scope(), Flags: x.HubFlags,
	}
	if err := x.connectToCloud(&c, dir, name, address); err != nil {
		return err
	}
	if x.Mode == Weir || x.Mode == LeaderHubs {
		if err := x.connectToCoordinator(&c, dir, name, address); err != nil {
			return err
		}
	}
	if x.site.registry != nil {
		c.ImagesPort = mirror(address)
		if c.ImagesRoot, err = x.contentOf(name); err != nil {
			return err
		}
	}
	if x.Places {
		root, err := x.rootOf(name)
		if err != nil {
			return err
		}
		c.EnrolCoordinatorDir, c.EnrolCoordinatorHosts, c.CoordinatorReplica = filepath.Join(root, onHost), []string{address},
			contract.ManagedReplica
	}
	if x.enrolsCoordinator(i) {
		host, err := x.coordinatorHost(i)
		if err != nil {
			return err
		}
		c.EnrolCoordinatorHosts = []string{host}
		if c.EnrolCoordinatorDir, err = x.certificatesDir(i); err != nil {
			return err
		}
		if len(x.CoordinatorIDs()) > 1 {
			c.CoordinatorReplica = strconv.Itoa(i + 1)
		}
	}
	endpoint := Endpoint{URL: "https://" + net.JoinHostPort(address, strconv.Itoa(contract.HubSecurePort))}
	noClock := slices.Contains(x.NoClock, name)
	if !noClock {
		endpoint.CAFile = filepath.Join(dir, parts.NodeAuthorityFile)
	} else {
		// an authority of the node's own would sign by the clock of that machine, and the testbed's clients, which it is for,
		// have another.
		signer := x.site.cloud.CA()
		pair, err := signer.IssueTo(weirpki.Door, weirpki.Subject{Hosts: []string{address, name, "localhost"}}, 0)
		if err != nil {
			return err
		}
		if _, err := testca.WriteBoth(dir, parts.ServingFile, pair); err != nil {
			return err
		}
		endpoint.CAPEM = signer.CertPEM()
	}
	x.hubs[name] = hubFiles{dir, c}
	part, err := x.site.ground.hub(parts.Launch{
		Spawner: x.site.spawner,
		Name:    "hub of " + name,
		Path:    x.command(HubOf(name), parts.HubCommand, noClock),
		NoClock: noClock,
		Dir:     dir,
		LogFile: filepath.Join(x.site.logDir, "hub-"+name+".log"),
		Data:    data,
	}, c)
	if err != nil {
		return err
	}
	x.site.addPart(HubOf(name), part)
	x.site.endpoints[name] = func(string) (Endpoint, error) { return endpoint, nil }
	return nil
}

// connectToCloud gives a hub its ways to the cloud, one per class, and its credential there.
func (x *localPool) connectToCloud(c *parts.HubConfig, dir, name, address string) error {
	for _, class := range []string{ClassNode, ClassPool, ClassHeartbeat, ClassControl} {
		url, err := x.cloudURL(name, address, class)
		if err != nil {
			return err
		}
		if class != ClassNode {
			url = class + "=" + url
		}
		c.CloudServers = append(c.CloudServers, url)
	}
	// The kubelet's certificate is the cloud's as well.
	var err error
	if c.ClientCAFile, err = testca.WriteFile(dir, parts.CloudCAFile, x.site.cloud.CA().CertPEM()); err != nil {
		return err
	}
	pair, err := x.site.cloud.KubeletCertificate(name, 0)
	if err != nil {
		return err
	}
	if c.CloudClientCert, err = testca.WriteBoth(dir, hubPair, pair); err != nil || x.asks() {
		return err
	}
	own, err := x.site.cloud.HubCertificate(x.Name, name, 0)
	if err != nil {
		return err
	}
	return testca.Keep(filepath.Join(c.DataDir, "pki"), weirpki.HubAtCloud, own)
}

// connectToCoordinator gives a hub its way to the coordinator and its credential there.
func (x *localPool) connectToCoordinator(c *parts.HubConfig, dir, name, address string) error {
	c.EnableCoordinator, c.PoolDoor = true, net.JoinHostPort(address, strconv.Itoa(contract.HubPoolPort))
	if x.lan != nil {
		p, err := x.lan.Proxy(name, classLAN, x.site.ground.near(address),
			net.JoinHostPort(address, strconv.Itoa(contract.HubPoolPort)))
		if err != nil {
			return err
		}
		c.PoolAddress = p.Addr()
	}
	if x.Mode == LeaderHubs {
		if err := x.nameLeaderHubs(c); err != nil {
			return err
		}
	}
	if x.Places {
		server, err := x.placedServer()
		if err != nil {
			return err
		}
		c.CoordinatorServers = []string{"https://" + server}
		return nil // the cloud tells it whom to trust
	}
	for i := range x.CoordinatorIDs() {
		host, err := x.coordinatorHost(i)
		if err != nil {
			return err
		}
		server := net.JoinHostPort(host, strconv.Itoa(contract.CoordinatorPort))
		if x.lan != nil {
			p, err := x.lan.Proxy(name, classLAN, x.site.ground.near(address), server)
			if err != nil {
				return err
			}
			server = p.Addr()
		}
		c.CoordinatorServers = append(c.CoordinatorServers, "https://"+server)
	}
	if x.site.gate != nil && !x.Gateless && !x.asks() && x.Mode == Weir {
		if err := x.tellGate(c, name, address); err != nil {
			return err
		}
	}
	if x.EnrolsCoordinator { // the cloud tells it whom to trust
		return nil
	}
	if _, err := testca.WriteFile(dir, parts.PoolCAFile, x.authority.CertPEM()); err != nil || x.asks() {
		return err
	}
	return x.give(filepath.Join(c.DataDir, "pki"), weirpki.Hub, weirpki.Subject{Pool: x.Name, Node: name})
}

// nameLeaderHubs tells a hub who leads the pool.
func (x *localPool) nameLeaderHubs(c *parts.HubConfig) error {
	for i, name := range x.NodeNames()[:max(x.Pool.LeaderHubs, 1)] {
		address, err := x.block.Addr(i + 1)
		if err != nil {
			return err
		}
		c.LeaderHubs = append(c.LeaderHubs, name+"="+net.JoinHostPort(address, strconv.Itoa(contract.HubPoolPort)))
	}
	return nil
}

// close ends the links. It may be called on a pool that was set up in part.
func (x *localPool) close() {
	for _, l := range []*link.Pool{x.uplink, x.lan} {
		if l != nil {
			l.Close()
		}
	}
	if x.viewer != nil {
		x.viewer.CloseIdleConnections()
	}
}

// scope is --pool-scope-resources of hubs and coordinator.
func (x *localPool) scope() []string {
	if !x.Unread || len(x.PoolScopeResources) > 0 {
		return x.PoolScopeResources
	}
	var all []string
	for _, r := range shared {
		all = append(all, "+"+r.Resource+"."+r.Version+"."+r.Group)
	}
	return all
}
