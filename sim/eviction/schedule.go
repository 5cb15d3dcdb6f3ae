package eviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// A column is the laboratory of its faults.
var _ interface {
	scenario.Lab
	scenario.Policies
} = (*column)(nil)

// injectAll lets the faults happen until ctx ends. What is not healed then stays: the column is over.
func (c *column) injectAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range c.s.Faults {
		g.Go(func() error {
			pause := time.Until(c.history.Began.Add(f.At))
			for range f.Repeat {
				if !runner.Slept(ctx, pause) {
					break
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

// inject does a fault once and heals it, unless ctx ends before.
func (c *column) inject(ctx context.Context, f scenario.Fault) error {
	at := &scenario.Aim{Fault: f, Pool: c.s.Topology.Pool, Seed: c.s.Seed}
	if err := f.Kind.Aim(ctx, c, at); err != nil || c.lacks(at) {
		return err
	}
	c.Note(f.String())
	if c.takesCloud(at) {
		c.writing.Lock()
		defer c.writing.Unlock()
	}
	end := c.opened(at)
	going, err := f.Kind.Begin(ctx, c, at)
	if err != nil || going.Heal == nil || !runner.Slept(ctx, f.For) {
		return err
	}
	if err := going.Heal(ctx); err != nil {
		return err
	}
	end()
	c.Note("healed: " + f.String())
	return nil
}

// lacks reports whether the column has no part of Weir, and one is the target.
func (c *column) lacks(at *scenario.Aim) bool {
	hub := at.Nodes == nil && slices.Contains([]string{"hub", "coordinator"}, runtime.PartID(at.Part).Kind())
	return c.mode != runtime.Weir && (at.Weir || hub)
}

// takesCloud reports whether the cloud is away while it lasts.
func (*column) takesCloud(at *scenario.Aim) bool {
	return at.Ends && at.Fault.Target == scenario.APIServer
}

// opened notes what begins, and returns what notes its end.
func (c *column) opened(at *scenario.Aim) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	closers := []func(time.Time){}
	open := func(of map[string][]Span, node string) {
		of[node] = append(of[node], Span{From: now})
		i := len(of[node]) - 1
		closers = append(closers, func(t time.Time) { of[node][i].To = t })
	}
	if _, kubelet := at.Fault.Target.Kubelet(); at.Ends && (kubelet || at.Nodes != nil) {
		open(c.history.Dead, at.Node)
	}
	if at.Stops {
		for _, n := range c.cutOff(at) {
			open(c.history.CutOff, n)
		}
	}
	if c.takesCloud(at) {
		c.history.Away = append(c.history.Away, Span{From: now})
		i := len(c.history.Away) - 1
		closers = append(closers, func(t time.Time) { c.history.Away[i].To = t })
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := time.Now()
		for _, f := range closers {
			f(now)
		}
	}
}

// cutOff are the nodes behind links that are cut.
func (c *column) cutOff(at *scenario.Aim) []string {
	if at.Fault.Target == scenario.WholePool {
		return c.history.Nodes
	}
	return at.Nodes
}

// Find implements scenario.Lab.
func (c *column) Find(ctx context.Context, at *scenario.Aim) error {
	hub, isHub := at.Fault.Target.Hub()
	kubelet, isKubelet := at.Fault.Target.Kubelet()
	part := runtime.PartID("")
	switch {
	case isHub:
		at.Node = c.history.Nodes[hub-1]
		part = runtime.HubOf(at.Node)
	case isKubelet:
		at.Node = c.history.Nodes[kubelet-1]
		part = runtime.KubeletOf(at.Node)
	case at.Fault.Target == scenario.APIServer:
		part = runtime.APIServer
	case at.Fault.Target == scenario.Coordinator:
		part = c.coordinators()[0]
	case at.Fault.Target == scenario.Leader, at.Fault.Target == scenario.Followers:
		leader, err := c.leader(ctx)
		if err != nil {
			return err
		}
		part = runtime.HubOf(leader)
		if at.Fault.Target == scenario.Followers {
			at.Nodes = slices.DeleteFunc(slices.Clone(c.history.Nodes), func(n string) bool { return n == leader })
		}
	}
	at.Part = string(part)
	return nil
}

// Part implements scenario.Lab.
func (c *column) Part(at *scenario.Aim) (scenario.Part, error) {
	id := runtime.PartID(at.Part)
	p, err := c.Site.Part(id)
	if id == runtime.APIServer {
		return p, err
	}
	return runner.Bundle{Part: p, Site: c.Site, IDs: []runtime.PartID{id}}, err
}

// Machine implements scenario.Lab.
func (c *column) Machine(at *scenario.Aim) (scenario.Part, error) {
	ids := []runtime.PartID{runtime.ContainersOf(at.Node)}
	if c.mode == runtime.Weir {
		ids = append(ids, runtime.HubOf(at.Node))
	}
	return runner.Bundle{Site: c.Site, IDs: append(ids, runtime.KubeletOf(at.Node))}, nil
}
