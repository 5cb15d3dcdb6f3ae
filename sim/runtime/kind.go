package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/kind"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
)

// Kind is the runtime of real kubelets: a kind cluster, each node of a pool a worker of it.
//
// Every worker of a pool with Weir has joined by `weir node join`, as its users type it (kindhub.go). A coordinator has
// a container of its own, a machine of the pool that is no node. The links are in this process, at the address that
// this machine has in the network of the containers; each worker is led there when it calls the cloud, and refuses
// itself every other way to its API (kinddoor.go). What the cloud asks a kubelet, for logs and exec, does not cross the
// link.
//
// A hub that is killed or frozen is its whole machine (docker kill, docker pause), with kubelet and pods; one that is
// stopped is the hub alone.
type Kind struct {
	// Binaries are the commands of Weir; those that are needed and not given are built from the repository. Coordinators
	// are of an image, which is made of the sources.
	Binaries parts.Binaries
	// NodeImage of all nodes; empty: what kind/node-image/build provides.
	NodeImage string
	// LogDir receives the logs of all parts, and of all nodes and pods when a run fails. Empty: they go with the other
	// files of the run.
	LogDir string
	// Logger of the links; default slog.Default().
	Logger *slog.Logger
}

var (
	_ Runtime = (*Kind)(nil)
	_ Limited = (*Kind)(nil)
)

// Name implements Runtime.
func (*Kind) Name() string { return "kind" }

// Lacks implements Limited.
func (*Kind) Lacks(kind string) string {
	switch kind {
	case APIServer.Kind():
		return "its kube-apiserver is a pod of the kind cluster, which cannot be stopped, frozen or restored from outside"
	case Moves:
		return "its hubs have the flags that they were installed with"
	case ControllerManager.Kind():
		return "its kube-controller-manager is a pod of the kind cluster, and runs anyway"
	case HollowNodes:
		return "its containers are real, and steered by nobody but their kubelet"
	}
	return ""
}

// Unjudged implements Limited.
func (*Kind) Unjudged() map[string]string {
	const kubelets = "real kubelets share the link, and the reference has none"
	return map[string]string{"total_bytes_ratio": kubelets, "new_cloud_connections": kubelets}
}

// Up implements Runtime.
func (k *Kind) Up(ctx context.Context, t Topology, progress Progress) (_ Site, err error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if err := k.Suits(t); err != nil {
		return nil, fmt.Errorf("runtime kind: %w", err)
	}
	if err := docker.Ping(ctx); err != nil {
		return nil, fmt.Errorf("runtime kind: %w", err)
	}
	if progress == nil {
		progress = func(string) {}
	}
	began := time.Now()
	s := &kindSite{progress: progress, byNode: map[string]*machine{}}
	s.localSite = newSite(t, s, k.Logger)
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = errors.Join(err, s.SaveEvidence(ctx))
		}
		if err != nil {
			err = errors.Join(err, s.Down(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.prepare(ctx, k); err != nil {
		return nil, err
	}
	if err := s.create(ctx); err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("kind: %d nodes are there after %.0f s", len(s.byNode)+1, time.Since(began).Seconds()))
	if err := s.attach(ctx); err != nil {
		return nil, err
	}
	if t.Manager {
		if err := s.addKindManager(ctx); err != nil {
			return nil, err
		}
	}
	for i, p := range t.Pools {
		if err := s.addPool(ctx, p, kindAddresses{s, p, i}); err != nil {
			return nil, fmt.Errorf("set up pool %s: %w", p.Name, err)
		}
	}
	s.notary = newNotary(s.localSite)
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	if err := s.CheckWalls(ctx); err != nil {
		return nil, err
	}
	for _, p := range t.Pools {
		way := "no way to the cloud but the link"
		if p.Unlinked {
			way = "no link"
		}
		progress(fmt.Sprintf("pool %s: %d nodes, mode %s, %s", p.Name, p.Nodes, p.Mode, way))
	}
	if slices.ContainsFunc(t.Pools, func(p Pool) bool { return p.Kubelets }) {
		if err := s.LoadApp(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// mostWorkers is how many nodes a kind cluster has at most. Each is a container with a kubelet, which takes some
// 130 MB.
const mostWorkers = 40

// Suits tells what of a topology cannot be had.
func (*Kind) Suits(t Topology) error {
	switch {
	case t.Unready:
		return errors.New("kube-apiserver cannot be made to say that it is not ready: kind starts it without a key service")
	case t.Frames:
		return errors.New("kube-apiserver logs no frames of its connections: its log is that of a pod of the kind cluster")
	}
	workers := 0
	for _, p := range t.Pools {
		if !p.Bare {
			workers += p.Nodes
		}
		if p.Unlinked && p.Mode != Stock {
			return fmt.Errorf("pool %s of mode %s has no link: only one of mode %s can be without", p.Name, p.Mode, Stock)
		}
		if p.Places {
			return fmt.Errorf(
				"pool %s has its coordinator as Pods: the testbed runs those in the place of the kubelets that nodes have here",
				p.Name)
		}
		if len(p.NoClock) > 0 {
			return fmt.Errorf(
				"pool %s has machines without a clock: its nodes are containers, whose clock is that of this machine", p.Name)
		}
	}
	if workers > mostWorkers {
		return fmt.Errorf("%d nodes are more than the %d that have room as containers", workers, mostWorkers)
	}
	return nil
}

// kindSite is the Site of Kind.
type kindSite struct {
	*localSite
	progress Progress

	run         *kind.Run
	image       string // of nodes
	coordinates string // the image of coordinators
	control     *machine
	byNode      map[string]*machine // workers

	down sync.Once
}

// prepare makes all that the cluster needs to be there before.
func (s *kindSite) prepare(ctx context.Context, k *Kind) (err error) {
	if s.spawner, err = proc.New(); err != nil {
		return err
	}
	if err := s.makeLogDir(k.LogDir); err != nil {
		return err
	}
	if s.image = k.NodeImage; s.image == "" {
		if s.image, err = kind.Image(ctx, s.spawner, s.progress); err != nil {
			return err
		}
	}
	if len(s.topology.Tools) > 0 {
		if s.tools, err = cloud.Find(ctx, s.spawner, s.progress, s.topology.Tools...); err != nil {
			return err
		}
	}
	commands := s.topology.commands()
	coordinated := slices.Contains(commands, parts.CoordinatorCommand)
	commands = slices.DeleteFunc(commands, func(c string) bool { return c == parts.CoordinatorCommand })
	if slices.Contains(commands, parts.HubCommand) {
		commands = append(commands, parts.OperatorCommand)
	}
	if s.commands, err = parts.Find(ctx, s.spawner, k.Binaries, s.progress, commands...); err != nil {
		return err
	}
	dir, err := s.spawner.Scratch()
	if err != nil {
		return err
	}
	if s.run, err = kind.Begin(ctx, dir); err == nil && coordinated {
		err = s.makeCoordinator(ctx)
	}
	return err
}

// each does something on all nodes, the control plane's too, a few at a time.
func (s *kindSite) each(ctx context.Context, do func(context.Context, *machine) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, m := range append(s.workers(), s.control) {
		g.Go(func() error {
			if err := do(ctx, m); err != nil {
				return fmt.Errorf("node %s: %w", m.node, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// workers are the machines of all nodes in the order of the topology.
func (s *kindSite) workers() []*machine {
	var all []*machine
	for _, p := range s.topology.Pools {
		for _, name := range p.NodeNames() {
			if m := s.byNode[name]; m != nil {
				all = append(all, m)
			}
		}
	}
	return all
}

// kindAddresses are those of a pool in the network of the run.
type kindAddresses struct {
	site   *kindSite
	pool   Pool
	number int
}

// Addr implements addresses. The nodes of a bare pool are where their clients are: here.
func (a kindAddresses) Addr(n int) (string, error) {
	if n >= coordinatorAddress {
		return a.site.run.Network.Addr(a.number*replicaAddresses + n - coordinatorAddress)
	}
	if a.pool.Bare {
		return a.site.run.Network.Gateway, nil
	}
	return a.site.byNode[a.pool.NodeNames()[n-1]].address, nil
}

// replicaAddresses are those that each pool has for its coordinators.
const replicaAddresses = 4
