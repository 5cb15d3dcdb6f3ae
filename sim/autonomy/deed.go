package autonomy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// faults lets the faults happen, each at its time, and waits until all are healed.
func (c *column) faults(ctx context.Context) error {
	if c.weir && c.led == nil { // what follows pods is what their kubelets write
		c.writes.start(ctx, c)
	}
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range c.s.Faults {
		if c.spared(f) {
			continue
		}
		g.Go(func() error {
			pause := time.Until(began.Add(f.At))
			for range f.Repeat {
				if !runner.Slept(ctx, pause) {
					return ctx.Err()
				}
				if err := c.inject(ctx, f); err != nil && ctx.Err() == nil {
					return fmt.Errorf("fault %s at %v: %w", f, f.At, err)
				}
				pause = f.Every
			}
			return nil
		})
	}
	return g.Wait()
}

// spared reports whether a fault is Weir's only: stock kubelets stay connected, for comparison. With Services they are
// cut off as Weir's.
func (c *column) spared(f scenario.Fault) bool {
	return !c.weir && c.led == nil &&
		slices.Contains([]scenario.Action{scenario.Cut, scenario.FillDisk, scenario.Attempt, scenario.Expire}, f.Action)
}

// targets are the nodes that a fault is about.
func (c *column) targets(f scenario.Fault) []string {
	if n, ok := f.Target.Hub(); ok {
		return c.nodes[n-1 : n]
	}
	if n, ok := f.Target.Kubelet(); ok {
		return c.nodes[n-1 : n]
	}
	return c.nodes
}

// inject does a fault once and heals it.
func (c *column) inject(ctx context.Context, f scenario.Fault) error {
	switch f.Action {
	case scenario.Cut:
		return c.injectCut(ctx, f)
	case scenario.Kill, scenario.Vanish:
		return c.injectDeath(ctx, f)
	case scenario.FillDisk:
		return c.injectFullDisk(ctx, f)
	case scenario.Expire:
		return c.injectExpiry(ctx, f)
	case scenario.Attempt:
		c.Note(f.String())
		return c.attempts.make(ctx, c, c.targets(f)[0])
	}
	c.Note(f.String())
	for _, node := range c.targets(f) {
		for i, name := range podNames(node, c.s.Autonomy.PodsPerNode) {
			if err := c.do(ctx, f.Action, node, name, i == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// do does to a pod what an action does to each, or to the first of a node.
func (c *column) do(ctx context.Context, a scenario.Action, node, pod string, first bool) error {
	switch {
	case a == scenario.Exit && !isJob(pod):
		return exit(ctx, c.machines[node], pod, 1)
	case a == scenario.Finish && isJob(pod):
		c.mu.Lock()
		c.finished[pod] = true
		c.mu.Unlock()
		return exit(ctx, c.machines[node], pod, 0)
	case a == scenario.Delete && first:
		c.mu.Lock()
		c.deleted[pod] = true
		c.mu.Unlock()
		return c.admin.CoreV1().Pods(corev1.NamespaceDefault).Delete(ctx, pod, metav1.DeleteOptions{})
	}
	return nil
}

// injectCut cuts links.
func (c *column) injectCut(ctx context.Context, f scenario.Fault) error {
	c.Note(f.String())
	keys := c.targets(f)
	if f.Target == scenario.WholePool {
		keys = []string{""}
	}
	for _, k := range keys {
		c.cutLink(f.Direction, k)
	}
	runner.Slept(ctx, f.For)
	for _, k := range keys {
		c.healLink(f.Direction, k)
	}
	c.Note("healed: " + f.String())
	return nil
}

// cutLink cuts the link of a node, or with "" of all.
func (c *column) cutLink(dir link.Direction, node string) {
	c.Site.Link(c.Pool).Cut(dir, node)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[node]++
}

func (c *column) healLink(dir link.Direction, node string) {
	c.Site.Link(c.Pool).Heal(dir, node)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[node] = max(c.cut[node]-1, 0)
	c.healed = time.Now()
}

// offline reports whether a node is cut off from the cloud.
func (c *column) offline(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut[""]+c.cut[node] > 0
}

// injectDeath kills a part, or with Vanish a machine with all that is on it, starts it again and waits until the node's
// containers run.
func (c *column) injectDeath(ctx context.Context, f scenario.Fault) error {
	if _, hub := f.Target.Hub(); !c.weir && (f.Target == scenario.Coordinator || hub && f.Action == scenario.Kill) {
		return nil
	}
	c.Note(f.String())
	if f.Target == scenario.Coordinator {
		return c.bounce(ctx, f, c.s.WeirPool().CoordinatorIDs()[:1])
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, node := range c.targets(f) {
		g.Go(func() error { return c.bounceNode(ctx, f, node) })
	}
	return g.Wait()
}

func (c *column) bounceNode(ctx context.Context, f scenario.Fault, node string) error {
	var ids []runtime.PartID
	_, kubelet := f.Target.Kubelet()
	switch {
	case f.Action == scenario.Vanish:
		ids = []runtime.PartID{runtime.ContainersOf(node)}
		if c.weir {
			ids = append(ids, runtime.HubOf(node))
		}
		if c.s.Autonomy.Names {
			ids = append(ids, runtime.ProxyOf(node))
		}
		ids = append(ids, runtime.KubeletOf(node))
	case kubelet:
		ids = []runtime.PartID{runtime.KubeletOf(node)}
	default:
		ids = []runtime.PartID{runtime.HubOf(node)}
	}
	if err := c.bounce(ctx, f, ids); err != nil {
		return err
	}
	c.Note("started again: " + f.String())
	return nil
}

// bounce kills parts, and starts them again, in this order. Containers that a machine did not lose end with its
// kubelet, so that who comes back has something to do.
func (c *column) bounce(ctx context.Context, f scenario.Fault, ids []runtime.PartID) error {
	last, node := ids[len(ids)-1].Kind(), ids[0].Of()
	if f.Action == scenario.Vanish {
		c.led.off(node) // first: nobody calls from a machine without power
	}
	parts := make([]runtime.Part, len(ids))
	for i, id := range ids {
		p, err := c.Site.Part(id)
		if err != nil {
			return err
		}
		if err := p.Kill(); err != nil {
			return err
		}
		parts[i] = p
	}
	if last == "kubelet" && f.Action == scenario.Kill {
		if err := c.exitAll(ctx, node); err != nil {
			return err
		}
	}
	if !runner.Slept(ctx, f.For) {
		return ctx.Err()
	}
	if f.Action == scenario.Vanish {
		if err := c.machines[node].Boots(); err != nil {
			return err
		}
		c.led.on(node)
	}
	began := time.Now()
	answered := func() {}
	for i, p := range parts {
		if ids[i].Kind() == "hub" {
			if err := c.spoil(node, p, f.Disk); err != nil {
				return err
			}
			if c.offline(node) && f.Disk != scenario.LoseDisk && !c.s.Autonomy.FirstBoot {
				answered = c.awaitAnswer(ctx, node)
			}
		}
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	answered()
	if f.Action == scenario.Vanish {
		if err := c.led.watch(ctx, c, node); err != nil {
			return err
		}
	}
	if last == "hub" {
		if err := c.exitAll(ctx, node); err != nil {
			return err
		}
	}
	if last == "coordinator" || (f.Disk == scenario.LoseDisk || !c.weir) && c.offline(node) {
		return nil // nobody can know what should run
	}
	if err := c.Until(ctx, backPatience, func() (bool, string) { return c.runsAgain(ctx, node) }); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarts++
	c.back = max(c.back, time.Since(began))
	return nil
}

// exitAll ends the containers of all apps of a node.
func (c *column) exitAll(ctx context.Context, node string) error {
	for _, name := range podNames(node, c.s.Autonomy.PodsPerNode) {
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

// injectFullDisk lets a hub write no file for a while.
func (c *column) injectFullDisk(ctx context.Context, f scenario.Fault) error {
	p, err := c.Site.Part(runtime.HubOf(c.targets(f)[0]))
	if err != nil {
		return err
	}
	full, ok := p.(runtime.Fillable)
	if !ok {
		return errors.New("its disk cannot be filled on this runtime")
	}
	c.Note(f.String())
	if err := full.FillDisk(); err != nil {
		return err
	}
	runner.Slept(ctx, f.For)
	c.Note("healed: " + f.String())
	return full.FreeDisk()
}
