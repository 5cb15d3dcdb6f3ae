package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/loopback"
)

// Local is the runtime of processes on this machine.
type Local struct {
	// Binaries are the commands of Weir; those that are needed and not given are built from the repository.
	Binaries parts.Binaries
	// LogDir receives the logs of all processes. Empty: they go with the other files of the run.
	LogDir string
	// APIServerArgs are further flags of the kube-apiserver.
	APIServerArgs []string
	// Logger of the links; default slog.Default().
	Logger *slog.Logger
	// Kubernetes is the version of the cloud, one of cloud.Versions. Empty: the one that the environment asks for.
	Kubernetes string
}

var _ Runtime = (*Local)(nil)

// Name implements Runtime.
func (*Local) Name() string { return "local" }

// Up implements Runtime.
func (l *Local) Up(ctx context.Context, t Topology, progress Progress) (_ Site, err error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(string) {}
	}
	version, err := cloud.Choose(l.Kubernetes)
	if err != nil {
		return nil, err
	}
	s := newSite(t, here{}, l.Logger)
	defer func() {
		if err != nil {
			// The context may be over; what is to be cleaned up does not depend on it.
			err = errors.Join(err, s.Down(context.WithoutCancel(ctx)))
		}
	}()
	if s.spawner, err = proc.New(); err != nil {
		return nil, err
	}
	if err := s.makeLogDir(l.LogDir); err != nil {
		return nil, err
	}
	if s.tools, err = version.Find(ctx, s.spawner, progress, t.assets()...); err != nil {
		return nil, err
	}
	if s.commands, err = parts.Find(ctx, s.spawner, l.Binaries, progress, t.commands()...); err != nil {
		return nil, err
	}
	if err := s.findTimeless(ctx, t, progress); err != nil {
		return nil, err
	}
	if err := s.startCloud(ctx, l, progress); err != nil {
		return nil, err
	}
	if t.Controllers {
		if err := s.addControllers(); err != nil {
			return nil, err
		}
	}
	if some := t.some(); some != "" {
		if err := s.addSome(some); err != nil {
			return nil, err
		}
	}
	if t.Manager {
		if err := s.addManager(ctx); err != nil {
			return nil, err
		}
	}
	if t.Gate {
		if err := s.addGate(ctx, s.hosts); err != nil {
			return nil, err
		}
	}
	if len(t.Images) > 0 {
		if err := s.addRegistry(ctx, progress); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(t.Pools, func(p Pool) bool { return p.Names }) {
		if err := s.findNames(ctx, progress); err != nil {
			return nil, err
		}
	}
	for i, p := range t.Pools {
		if err := s.addPool(ctx, p, s.blocks[i+1]); err != nil {
			return nil, fmt.Errorf("set up pool %s: %w", p.Name, err)
		}
		progress(fmt.Sprintf("pool %s: %d nodes at %s, mode %s", p.Name, p.Nodes, s.blocks[i+1], p.Mode))
	}
	s.notary = newNotary(s)
	if t.Described {
		if err := s.describe(ctx); err != nil {
			return nil, err
		}
	}
	if pools := t.poolsOfKubelets(); len(pools) > 0 {
		if s.label, err = s.cloud.KeepPools(pools); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// localSite is the Site of Local, and what every Site has in common: links and clients are in this process and on this
// machine whatever the parts stand on.
type localSite struct {
	topology Topology
	ground   ground
	logger   *slog.Logger
	logDir   string
	tools    cloud.Binaries
	commands parts.Binaries
	timeless parts.Binaries // those of machines without a clock; nil: all have one

	spawner *proc.Spawner
	blocks  []*loopback.Block // the cloud's and one per pool
	cloud   *cloud.Cloud
	pools   []*localPool
	hosts   []string // addresses of nodes, the near ends of their links
	gate    *gate    // nil: there is none
	label   func()   // ends the labelling of nodes
	notary  *notary  // nil: it does not run yet
	pulse   *pulse   // nil: no Node is said to be alive but by its kubelet

	registry *registry // nil: there are no images
	names    names     // empty: nodes lead to no Service

	endpoints map[string]func(class string) (Endpoint, error) // by node
	machines  map[string]Machine                              // by node
	parts     map[PartID]Part
	partIDs   []PartID

	down sync.Once
}

func newSite(t Topology, g ground, logger *slog.Logger) *localSite {
	return &localSite{
		topology: t, ground: g, logger: logger, endpoints: map[string]func(class string) (Endpoint, error){},
		machines: map[string]Machine{}, parts: map[PartID]Part{},
	}
}

// makeLogDir makes the folder of logs, among the other files of the run when none is given.
func (s *localSite) makeLogDir(dir string) (err error) {
	if dir == "" {
		s.logDir, err = s.spawner.Scratch("logs")
		return err
	}
	if s.logDir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(s.logDir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("create folder of logs: %w", err)
	}
	return nil
}

// startCloud takes the addresses of the whole site, since the apiserver's certificate names them, and starts the cloud.
func (s *localSite) startCloud(ctx context.Context, l *Local, progress Progress) error {
	var hosts []string
	for i := range len(s.topology.Pools) + 1 {
		reserve := loopback.Reserve
		if i > 0 && s.topology.Described && s.topology.Pools[i-1].Mode != Stock {
			reserve = loopback.ReserveNodes // kube-apiserver takes them for leader hubs
		}
		block, err := reserve(ctx)
		if err != nil {
			return err
		}
		s.blocks = append(s.blocks, block)
		if i == 0 {
			continue
		}
		for n := range s.topology.Pools[i-1].Nodes {
			address, err := block.Addr(n + 1)
			if err != nil {
				return err
			}
			hosts = append(hosts, address)
		}
	}
	s.hosts = hosts
	address, err := s.blocks[0].Addr(1)
	if err != nil {
		return err
	}
	s.cloud, err = cloud.Start(ctx, cloud.Config{
		Spawner: s.spawner, Binaries: s.tools, LogDir: s.logDir,
		Address: address, Hosts: hosts, Args: append(s.topology.timers().APIServerFlags(), l.APIServerArgs...),
		Keys: s.topology.Unready, Frames: s.topology.Frames, Progress: progress,
	})
	if err != nil {
		return err
	}
	s.addPart(APIServer, &apiserverPart{cloud: s.cloud})
	return nil
}

func (s *localSite) addPart(id PartID, p Part) {
	s.parts[id] = p
	s.partIDs = append(s.partIDs, id)
}

func (s *localSite) Admin() *rest.Config { return s.cloud.RESTConfig() }

func (s *localSite) Token(ctx context.Context, identity string) (string, error) {
	return s.cloud.ClientToken(ctx, identity)
}

func (s *localSite) Tool(name string) (string, error) {
	if path := s.tools[name]; path != "" {
		return path, nil
	}
	return "", fmt.Errorf("the topology did not ask for the tool %q", name)
}

func (s *localSite) Endpoint(node, class string) (Endpoint, error) {
	find, ok := s.endpoints[node]
	if !ok {
		return Endpoint{}, fmt.Errorf("there is no node %q", node)
	}
	return find(class)
}

// Machine implements Machines.
func (s *localSite) Machine(node string) (Machine, error) {
	m, ok := s.machines[node]
	if !ok {
		return m, fmt.Errorf("there is no hollow node %q", node)
	}
	return m, nil
}

func (s *localSite) Link(pool string) *link.Pool {
	if p := s.pool(pool); p != nil {
		return p.uplink
	}
	return nil
}

func (s *localSite) LAN(pool string) *link.Pool {
	if p := s.pool(pool); p != nil {
		return p.lan
	}
	return nil
}

func (s *localSite) pool(name string) *localPool {
	for _, p := range s.pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (s *localSite) Parts() []PartID { return slices.Clone(s.partIDs) }

func (s *localSite) Part(id PartID) (Part, error) {
	if p, ok := s.parts[id]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("there is no part %q, there are %v", id, s.partIDs)
}

// Down ends hubs and coordinators while links and cloud still work, then those.
func (s *localSite) Down(ctx context.Context) error {
	var all []error
	s.down.Do(func() {
		for _, p := range s.pools {
			if p.placed != nil { // else they would start what is stopped
				all = append(all, p.placed.close(ctx))
			}
		}
		all = append(all, s.stopParts(ctx))
		if s.label != nil {
			s.label()
		}
		if s.pulse != nil {
			s.pulse.close()
		}
		for _, p := range s.pools {
			p.close()
		}
		if s.notary != nil {
			s.notary.close()
		}
		if s.cloud != nil {
			all = append(all, s.cloud.Close())
		}
		if s.spawner != nil {
			all = append(all, s.spawner.Close())
		}
		for _, b := range s.blocks {
			b.Release()
		}
	})
	return errors.Join(all...)
}

func (s *localSite) stopParts(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, len(s.partIDs))
	for i, id := range s.partIDs {
		if part := s.parts[id]; id != APIServer && part.Running() {
			wg.Go(func() {
				if err := part.Stop(ctx); err != nil && part.Running() {
					errs[i] = err
				} else if err != nil && ctx.Err() == nil {
					errs[i] = err
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}
