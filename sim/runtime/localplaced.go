package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/weir-edge/weir/impl/contract"
	poolv1 "github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/sim/kubelet"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
)

const (
	// coordinatorImage is what weir-manager is told to run: on each node it is the command weir-coordinator.
	coordinatorImage = "weir-coordinator:testbed"
	placedPatience   = 3 * time.Minute
	placedPoll       = 200 * time.Millisecond
	placedAsk        = 3 * time.Second // the cloud; while it is away what was is
	// onHost is where the coordinator of a node has its certificates.
	onHost = "/var/lib/weir/coordinator/certificates"
)

// Placing is a Site where weir-manager runs coordinators, as Pods, on machines that can lose power.
type Placing interface {
	// Placed are the nodes on which the coordinator of a pool is to be, in the order of its parts, and whether all
	// replicas there are ready.
	Placed(ctx context.Context, pool string) (nodes []string, ready bool, err error)
	// PlacedAt are the addresses that hubs are told.
	PlacedAt(ctx context.Context, pool string) (servers []string, err error)
	// Place says on which nodes it may be, those that are preferred first.
	Place(ctx context.Context, pool string, nodes []string) error
	// Runs reports whether a process of the coordinator runs on a node.
	Runs(node string) bool
	// LosePower lets all that runs on a node stand still: nobody is told. Power ends it, and starts what the node runs
	// again, with its disk.
	LosePower(node string) error
	Power(ctx context.Context, node string) error
}

var _ Placing = (*localSite)(nil)

// placed is the coordinator of a pool that weir-manager runs.
type placed struct {
	pool *localPool

	mu     sync.Mutex
	agents map[string]*kubelet.Agent // by node
	last   []poolv1.Replica
	asked  time.Time
}

// rootOf is the folder in the place of a node's disk.
func (x *localPool) rootOf(name string) (string, error) {
	return x.site.spawner.Scratch(x.Name, name, "host")
}

// addPlaced prepares the parts of a coordinator that weir-manager runs.
func (x *localPool) addPlaced() error {
	if err := x.newViewer(); err != nil {
		return err
	}
	x.placed = &placed{pool: x, agents: map[string]*kubelet.Agent{}}
	for i, id := range x.CoordinatorIDs() {
		x.site.addPart(id, &placedPart{placed: x.placed, index: i})
	}
	return nil
}

// addAgent prepares what runs the Pods of a node.
func (x *localPool) addAgent(name, address string) error {
	dir, err := x.site.spawner.Scratch(x.Name, name, "agent")
	if err != nil {
		return err
	}
	root, err := x.rootOf(name)
	if err != nil {
		return err
	}
	config, _, err := x.kubeletConfig(dir, name, 0)
	if err != nil {
		return err
	}
	logger := x.site.logger
	if logger == nil {
		logger = slog.Default()
	}
	x.placed.agents[name] = kubelet.New(kubelet.Config{
		Spawner: x.site.spawner, Node: name, Address: address, API: config, Root: root, LogDir: x.site.logDir, Logger: logger,
		Commands: map[string]string{coordinatorImage: x.command(CoordinatorOf(x.Name), parts.CoordinatorCommand, false)},
	})
	return nil
}

// replicas are those that the Pool names; while the cloud is away, those that it named.
func (p *placed) replicas(ctx context.Context) (all []poolv1.Replica, err error) {
	ctx, cancel := context.WithTimeout(ctx, placedAsk)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) < placedPoll {
		return p.last, nil
	}
	p.asked = time.Now()
	own, err := p.pool.site.own(ctx, p.pool.Name)
	if err == nil {
		p.last = own.Status.Replicas
	}
	return p.last, err
}

func (s *localSite) dynamic() (dynamic.Interface, error) {
	c := s.cloud.RESTConfig()
	c.QPS = -1
	return dynamic.NewForConfig(c)
}

// own is the Pool of a name.
func (s *localSite) own(ctx context.Context, name string) (*poolv1.Pool, error) {
	client, err := s.dynamic()
	if err != nil {
		return nil, err
	}
	o, err := client.Resource(poolv1.GroupVersion.WithResource("pools")).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	p := &poolv1.Pool{}
	return p, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p)
}

// Placed implements Placing.
func (s *localSite) Placed(ctx context.Context, pool string) (nodes []string, ready bool, err error) {
	x := s.pool(pool)
	if x == nil || x.placed == nil {
		return nil, false, fmt.Errorf("there is no pool %q whose coordinator is placed", pool)
	}
	all, err := x.placed.replicas(ctx)
	ready = len(all) > 0
	for _, r := range all {
		nodes, ready = append(nodes, r.Node), ready && r.Ready
	}
	return nodes, ready, err
}

// PlacedAt implements Placing.
func (s *localSite) PlacedAt(ctx context.Context, pool string) ([]string, error) {
	own, err := s.own(ctx, pool)
	if err != nil {
		return nil, err
	}
	return own.Status.Coordinators, nil
}

// Place implements Placing.
func (s *localSite) Place(ctx context.Context, pool string, nodes []string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"coordinator": map[string]any{"nodes": nodes}}})
	if err != nil {
		return err
	}
	client, err := s.dynamic()
	if err != nil {
		return err
	}
	_, err = client.Resource(poolv1.GroupVersion.WithResource("pools")).Patch(ctx, pool, types.MergePatchType, patch,
		metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("say where the coordinator of %s may be: %w", pool, err)
	}
	return nil
}

// Runs implements Placing.
func (s *localSite) Runs(name string) bool {
	a := s.agent(name)
	return a != nil && a.Process() != nil
}

func (s *localSite) agent(name string) *kubelet.Agent {
	for _, x := range s.pools {
		if x.placed != nil && x.placed.agents[name] != nil {
			return x.placed.agents[name]
		}
	}
	return nil
}

// LosePower implements Placing.
func (s *localSite) LosePower(name string) error {
	hub, err := s.Part(HubOf(name))
	if err != nil {
		return err
	}
	return errors.Join(hub.Freeze(), s.agent(name).Freeze())
}

// Power implements Placing.
func (s *localSite) Power(ctx context.Context, name string) error {
	hub, err := s.Part(HubOf(name))
	if err != nil {
		return err
	}
	s.agent(name).PowerOff()
	if err := hub.Kill(); err != nil {
		return err
	}
	<-hub.Done()
	err = hub.Start(ctx)
	s.agent(name).Start()
	return err
}

// close ends all agents.
func (p *placed) close(ctx context.Context) (err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, a := range p.agents {
		all.Go(func() {
			e := a.Close(ctx)
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, e)
		})
	}
	all.Wait()
	return err
}

// placedPart is one replica of such a coordinator, wherever it is: a Part of which the process is another one when it
// is placed again.
type placedPart struct {
	*placed
	index int
}

// at is where it is now.
func (p *placedPart) at(ctx context.Context) (*kubelet.Agent, *parts.Probe, error) {
	all, err := p.replicas(ctx)
	if p.index >= len(all) {
		return nil, nil, errors.Join(fmt.Errorf("%s is not placed", p.Name()), err)
	}
	return p.agents[all[p.index].Node], parts.URLProbe(p.Name(), all[p.index].Server, p.pool.viewer), nil
}

func (p *placedPart) agent() *kubelet.Agent {
	a, _, _ := p.at(context.Background())
	return a
}

func (p *placedPart) process() *proc.Process {
	if a := p.agent(); a != nil {
		return a.Process()
	}
	return nil
}

// Name implements Part.
func (p *placedPart) Name() string {
	return "coordinator " + strconv.Itoa(p.index+1) + " of " + p.pool.Name
}

// Start lets the nodes run what they are to run, and waits until the replica is healthy.
func (p *placedPart) Start(ctx context.Context) error {
	for _, a := range p.agents {
		a.Start()
	}
	ctx, cancel := context.WithTimeout(ctx, placedPatience)
	defer cancel()
	tick := time.NewTicker(placedPoll)
	defer tick.Stop()
	for {
		_, probe, err := p.at(ctx)
		if err == nil {
			if err = probe.Healthy(ctx); err == nil {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is not healthy: %w", p.Name(), err)
		}
	}
}

// Stop implements Part. The node starts it again.
func (p *placedPart) Stop(ctx context.Context) error {
	x := p.process()
	if x == nil {
		return fmt.Errorf("stop %s: it is not running", p.Name())
	}
	return x.Stop(ctx, placedAsk)
}

// Kill implements Part. The node starts it again.
func (p *placedPart) Kill() error {
	x := p.process()
	if x == nil {
		return fmt.Errorf("kill %s: it is not running", p.Name())
	}
	x.Kill()
	return nil
}

// Freeze implements Part.
func (p *placedPart) Freeze() error {
	if x := p.process(); x != nil {
		return x.Freeze()
	}
	return fmt.Errorf("freeze %s: it is not running", p.Name())
}

// Thaw implements Part.
func (p *placedPart) Thaw() error {
	if x := p.process(); x != nil {
		return x.Thaw()
	}
	return fmt.Errorf("thaw %s: it is not running", p.Name())
}

// LoseDisk implements Part.
func (p *placedPart) LoseDisk() error { return fmt.Errorf("%s has the disk of its node", p.Name()) }

// Running implements Part.
func (p *placedPart) Running() bool { return p.process() != nil }

// Done implements Part: of the process that runs now.
func (p *placedPart) Done() <-chan struct{} {
	if x := p.process(); x != nil {
		return x.Done()
	}
	return nil
}

// Err implements Part.
func (p *placedPart) Err() error { return nil }

// Usage implements Part.
func (p *placedPart) Usage() (proc.Usage, error) {
	if x := p.process(); x != nil {
		return x.Usage()
	}
	return proc.Usage{}, fmt.Errorf("measure %s: it is not running", p.Name())
}

// Status implements Part.
func (p *placedPart) Status(ctx context.Context, v any) error {
	_, probe, err := p.at(ctx)
	if err != nil {
		return err
	}
	return probe.Status(ctx, v)
}

// Metrics implements Part.
func (p *placedPart) Metrics(ctx context.Context) (parts.Metrics, error) {
	_, probe, err := p.at(ctx)
	if err != nil {
		return parts.Metrics{}, err
	}
	return probe.Metrics(ctx)
}

// LogFile implements Part.
func (p *placedPart) LogFile() string {
	if a := p.agent(); a != nil {
		return a.LogFile()
	}
	return filepath.Join(p.pool.site.logDir, "coordinator.log")
}

// placedServer is where the coordinator of a pool is first: on its first node.
func (x *localPool) placedServer() (string, error) {
	host, err := x.block.Addr(1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(contract.CoordinatorPort)), nil
}
