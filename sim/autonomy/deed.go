package autonomy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// A column is the laboratory of its faults.
var _ interface {
	scenario.Lab
	scenario.Pods
	scenario.Callers
	scenario.Issuers
} = (*column)(nil)

// faults lets the faults happen, each at its time, and waits until all are healed.
func (c *column) faults(ctx context.Context) error {
	if c.weir && c.led == nil { // what follows pods is what their kubelets write
		c.writes.start(ctx, c)
	}
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range c.s.Faults {
		at := &scenario.Aim{Fault: f, Pool: c.s.Topology.Pool, Seed: c.s.Seed}
		if err := f.Kind.Aim(ctx, c, at); err != nil {
			return err
		}
		if c.spares(at) {
			continue
		}
		g.Go(func() error {
			pause := time.Until(began.Add(f.At))
			for range f.Repeat {
				if !runner.Slept(ctx, pause) {
					return ctx.Err()
				}
				if err := c.inject(ctx, at); err != nil && ctx.Err() == nil {
					return fmt.Errorf("fault %s at %v: %w", f, f.At, err)
				}
				pause = f.Every
			}
			return nil
		})
	}
	return g.Wait()
}

// spares reports whether a fault is Weir's only: stock kubelets stay connected, for comparison. With Services they are
// cut off as Weir's.
func (c *column) spares(at *scenario.Aim) bool {
	_, hub := at.Fault.Target.Hub()
	if ofWeir := hub && at.Nodes == nil || at.Fault.Target == scenario.Coordinator; at.Ends && ofWeir {
		return !c.weir
	}
	return !c.weir && c.led == nil && (at.Stops || at.Weir)
}

// targets are the nodes that a fault is about.
func (c *column) targets(at *scenario.Aim) []string {
	if at.Node != "" {
		return []string{at.Node}
	}
	return c.nodes
}

// inject does a fault once and heals it. What ended says itself when it is back.
func (c *column) inject(ctx context.Context, at *scenario.Aim) error {
	c.Note(at.Fault.String())
	going, err := at.Fault.Kind.Begin(ctx, c, at)
	if err != nil || going.Heal == nil {
		return err
	}
	if _, kubelet := at.Fault.Target.Kubelet(); at.Ends && kubelet {
		if err := c.exitAll(ctx, at.Node); err != nil {
			return err
		}
	}
	if !runner.Slept(ctx, at.Fault.For) && at.Ends {
		return ctx.Err()
	}
	if err := going.Heal(ctx); err != nil || at.Ends {
		return err
	}
	c.Note("healed: " + at.Fault.String())
	return nil
}

// Find implements scenario.Lab.
func (c *column) Find(_ context.Context, at *scenario.Aim) error {
	hub, isHub := at.Fault.Target.Hub()
	kubelet, isKubelet := at.Fault.Target.Kubelet()
	part := runtime.PartID("")
	switch {
	case isHub:
		at.Node = c.nodes[hub-1]
		part = runtime.HubOf(at.Node)
	case isKubelet:
		at.Node = c.nodes[kubelet-1]
		part = runtime.KubeletOf(at.Node)
	case at.Fault.Target == scenario.Coordinator:
		part = layout.WeirPool(c.s).CoordinatorIDs()[0]
	}
	at.Part = string(part)
	return nil
}

// Lines implements scenario.Lab. The links of a machine that vanishes stay.
func (c *column) Lines(_ scenario.Pool, name scenario.LinkName) []scenario.Line {
	if name == "" {
		return nil
	}
	return []scenario.Line{line{c.Site.Link(c.Pool), c}}
}

// Part implements scenario.Lab.
func (c *column) Part(at *scenario.Aim) (scenario.Part, error) {
	id := runtime.PartID(at.Part)
	p, err := c.Site.Part(id)
	if !at.Ends {
		return p, err
	}
	return &fallen{Part: p, c: c, at: at, node: at.Node, ids: []runtime.PartID{id}}, err
}

// Machine implements scenario.Lab: all machines, if the pool is the target.
func (c *column) Machine(at *scenario.Aim) (scenario.Part, error) {
	all := &machines{}
	for _, node := range c.targets(at) {
		ids := []runtime.PartID{runtime.ContainersOf(node)}
		if c.weir {
			ids = append(ids, runtime.HubOf(node))
		}
		if c.about.Names {
			ids = append(ids, runtime.ProxyOf(node))
		}
		ids = append(ids, runtime.KubeletOf(node))
		all.each = append(all.each, &fallen{c: c, at: at, node: node, ids: ids, machine: true})
	}
	return all, nil
}

// Exit implements scenario.Pods.
func (c *column) Exit(ctx context.Context, at *scenario.Aim) error {
	for _, node := range c.targets(at) {
		if err := c.exitAll(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// Finish implements scenario.Pods.
func (c *column) Finish(ctx context.Context, at *scenario.Aim) error {
	for _, node := range c.targets(at) {
		for _, pod := range podNames(node, c.about.PodsPerNode) {
			if !isJob(pod) {
				continue
			}
			c.mu.Lock()
			c.finished[pod] = true
			c.mu.Unlock()
			if err := exit(ctx, c.machines[node], pod, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete implements scenario.Pods.
func (c *column) Delete(ctx context.Context, at *scenario.Aim) error {
	for _, node := range c.targets(at) {
		pod := podNames(node, c.about.PodsPerNode)[0]
		c.mu.Lock()
		c.deleted[pod] = true
		c.mu.Unlock()
		err := c.admin.CoreV1().Pods(corev1.NamespaceDefault).Delete(ctx, pod, metav1.DeleteOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// Attempt implements scenario.Callers.
func (c *column) Attempt(ctx context.Context, at *scenario.Aim) error {
	return c.attempts.make(ctx, c, at.Node)
}

// line is the uplink. The column knows which nodes are cut off.
type line struct {
	*link.Pool

	c *column
}

// Cut cuts the link of a node, or with "" of all.
func (l line) Cut(dir link.Direction, node string) {
	l.Pool.Cut(dir, node)
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.cut[node]++
}

// Heal ends that.
func (l line) Heal(dir link.Direction, node string) {
	l.Pool.Heal(dir, node)
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.cut[node] = max(l.c.cut[node]-1, 0)
	l.c.healed = time.Now()
}

// offline reports whether a node is cut off from the cloud.
func (c *column) offline(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut[""]+c.cut[node] > 0
}

// machines are several that lose power together.
type machines struct {
	scenario.Part // nil: nothing else is done to them

	each []*fallen
}

// Kill implements scenario.Part.
func (m *machines) Kill() error {
	var g errgroup.Group
	for _, one := range m.each {
		g.Go(one.Kill)
	}
	return g.Wait()
}

// LoseDisk implements scenario.Part: each does so when it starts.
func (*machines) LoseDisk() error { return nil }

// Start implements scenario.Part.
func (m *machines) Start(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, one := range m.each {
		g.Go(func() error { return one.Start(ctx) })
	}
	return g.Wait()
}

// fallen is a part that is killed, or a machine with all that is on it. It is back when the node's containers run.
type fallen struct {
	scenario.Part // nil of a machine

	c       *column
	at      *scenario.Aim
	node    string // "": a coordinator
	ids     []runtime.PartID
	machine bool
	parts   []runtime.Part
}

// Kill implements scenario.Part.
func (x *fallen) Kill() error {
	if x.machine {
		x.c.led.off(x.node) // first: nobody calls from a machine without power
	}
	x.parts = nil
	for _, id := range x.ids {
		p, err := x.c.Site.Part(id)
		if err != nil {
			return err
		}
		if err := p.Kill(); err != nil {
			return err
		}
		x.parts = append(x.parts, p)
	}
	return nil
}

// LoseDisk implements scenario.Part: a hub does so when it starts.
func (*fallen) LoseDisk() error { return nil }

// Start implements scenario.Part: it starts parts again, in their order. Containers that a machine did not lose end
// with its hub, so that who comes back has something to do.
func (x *fallen) Start(ctx context.Context) error {
	c, last, disk := x.c, x.ids[len(x.ids)-1].Kind(), x.at.Fault.Disk()
	if x.machine {
		if err := c.machines[x.node].Boots(); err != nil {
			return err
		}
		c.led.on(x.node)
	}
	began := time.Now()
	if err := x.startParts(ctx, disk); err != nil {
		return err
	}
	if x.machine {
		if err := c.led.watch(ctx, c, x.node); err != nil {
			return err
		}
	}
	if last == "hub" {
		if err := c.exitAll(ctx, x.node); err != nil {
			return err
		}
	}
	if last == "coordinator" {
		return nil
	}
	if known := disk != scenario.LoseDisk && c.weir || !c.offline(x.node); known { // else nobody can know what should run
		if err := c.Until(ctx, backPatience, func() (bool, string) { return c.runsAgain(ctx, x.node) }); err != nil {
			return err
		}
		c.mu.Lock()
		c.restarts++
		c.back = max(c.back, time.Since(began))
		c.mu.Unlock()
	}
	c.Note("started again: " + x.at.Fault.String())
	return nil
}

func (x *fallen) startParts(ctx context.Context, disk scenario.Disk) error {
	c, answered := x.c, func() {}
	for i, p := range x.parts {
		if x.ids[i].Kind() == "hub" {
			if err := c.spoil(x.node, p, disk); err != nil {
				return err
			}
			if c.offline(x.node) && disk != scenario.LoseDisk && !c.about.FirstBoot {
				answered = c.awaitAnswer(ctx, x.node)
			}
		}
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	answered()
	return nil
}

// exitAll ends the containers of all apps of a node.
func (c *column) exitAll(ctx context.Context, node string) error {
	for _, name := range podNames(node, c.about.PodsPerNode) {
		if !isJob(name) {
			if err := exit(ctx, c.machines[node], name, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// runsAgain reports whether the containers of all pods of a node run that should.
func (c *column) runsAgain(ctx context.Context, node string) (bool, string) {
	on, err := containers(ctx, c.machines[node])
	if err != nil {
		return false, err.Error()
	}
	n, all, truth := 0, 0, latest(on)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.podsOf(node) {
		if c.finished[name] || c.deleted[name] {
			continue
		}
		all++
		if truth[name].State == runningState {
			n++
		}
	}
	return n == all, fmt.Sprintf("waiting for pods of %s to run again: %d of %d do", node, n, all)
}

// spoil does to a hub's disk what the fault says.
func (c *column) spoil(node string, p runtime.Part, d scenario.Disk) error {
	switch d {
	case scenario.LoseDisk:
		return p.LoseDisk()
	case scenario.TornDisk:
		return tear(filepath.Join(c.machines[node].HubData, "store"), c.s.Seed)
	}
	return nil
}

// tornPage is how much of a file one bad spot of a flash is about. The first two pages of a database say which others
// are trusted: without both, nothing of it can be found.
const tornPage = 4096

// tear changes a byte in one of three pages of each file and cuts the end of it off, as a power cut and bad flash may.
// A few bytes of a whole file would mostly hit room that is not in use.
func tear(dir string, seed int64) error {
	rnd := rand.New(rand.NewPCG(uint64(seed), 1))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			continue
		}
		for at := 0; at < len(b); at += tornPage {
			if at < 2*tornPage && len(b) > 2*tornPage || rnd.IntN(3) > 0 {
				continue
			}
			b[at+rnd.IntN(min(tornPage, len(b)-at))] ^= byte(1 + rnd.IntN(255))
		}
		if err := os.WriteFile(path, b[:len(b)-len(b)/16], 0o600); err != nil {
			return err
		}
	}
	return nil
}
