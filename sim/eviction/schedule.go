package eviction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

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
	d, err := c.find(ctx, f)
	if err != nil || d == nil {
		return err
	}
	c.Note(f.String())
	if d.cloud {
		c.writing.Lock()
		defer c.writing.Unlock()
	}
	end := c.opened(d)
	if err := d.begin(ctx); err != nil {
		return err
	}
	if d.heal == nil || !runner.Slept(ctx, f.For) {
		return nil
	}
	if err := d.heal(ctx); err != nil {
		return err
	}
	end()
	c.Note("healed: " + f.String())
	return nil
}

// deed is a fault with its target found.
type deed struct {
	begin, heal  func(context.Context) error // heal is nil if there is nothing to heal
	dead, cutOff []string                    // nodes, while it lasts
	cloud        bool                        // the cloud is away while it lasts
}

// opened notes what begins, and returns what notes its end.
func (c *column) opened(d *deed) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	closers := []func(time.Time){}
	open := func(of map[string][]Span, node string) {
		of[node] = append(of[node], Span{From: now})
		i := len(of[node]) - 1
		closers = append(closers, func(t time.Time) { of[node][i].To = t })
	}
	for _, n := range d.dead {
		open(c.history.Dead, n)
	}
	for _, n := range d.cutOff {
		open(c.history.CutOff, n)
	}
	if d.cloud {
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

// find finds out what a fault means now; nil: nothing in this column, which has no part of Weir.
func (c *column) find(ctx context.Context, f scenario.Fault) (*deed, error) {
	switch f.Action {
	case scenario.Cut:
		return c.findCut(ctx, f)
	case scenario.Slow:
		return c.findSlow(f), nil
	case scenario.SetPolicy:
		if c.mode != runtime.Weir {
			return nil, nil
		}
		return &deed{begin: func(ctx context.Context) error { return c.setPolicy(ctx, *f.Policy) }}, nil
	case scenario.Unready:
		return c.findUnready()
	case scenario.Vanish:
		n, _ := f.Target.Hub()
		return c.vanish(c.history.Nodes[n-1]), nil
	case scenario.Kill:
		return c.findKill(ctx, f)
	}
	return nil, fmt.Errorf("there is no action %s in a scenario with eviction", f.Action)
}

func (c *column) findCut(ctx context.Context, f scenario.Fault) (*deed, error) {
	dir := f.Direction
	if dir == 0 {
		dir = link.Both
	}
	nodes, silent := []string{""}, c.history.Nodes
	if n, one := f.Target.Hub(); one {
		nodes = []string{c.history.Nodes[n-1]}
		silent = nodes
	} else if f.Target == scenario.Followers {
		leader, err := c.leader(ctx)
		if err != nil {
			return nil, err
		}
		nodes = nil
		for _, n := range c.history.Nodes {
			if n != leader {
				nodes = append(nodes, n)
			}
		}
		silent = nodes
	}
	uplink := c.Site.Link(c.Pool)
	return &deed{
		cutOff: silent,
		begin:  func(context.Context) error { each(nodes, func(n string) { uplink.Cut(dir, n) }); return nil },
		heal:   func(context.Context) error { each(nodes, func(n string) { uplink.Heal(dir, n) }); return nil },
	}, nil
}

func each(names []string, do func(string)) {
	for _, n := range names {
		do(n)
	}
}

func (c *column) findUnready() (*deed, error) {
	p, err := c.Site.Part(runtime.APIServer)
	if err != nil {
		return nil, err
	}
	u, ok := p.(runtime.Unready)
	if !ok {
		return nil, errors.New("this apiserver cannot be made to say that it is not ready")
	}
	return &deed{
		begin: func(ctx context.Context) error { return u.SetReady(ctx, false) },
		heal:  func(ctx context.Context) error { return u.SetReady(ctx, true) },
	}, nil
}

func (c *column) findSlow(f scenario.Fault) *deed {
	l, was := c.Site.Link(c.Pool), c.s.Topology.Pool.Uplink
	return &deed{
		begin: func(context.Context) error {
			if f.Rate != nil {
				l.SetRate(link.Both, int64(*f.Rate))
			}
			if f.RTT != nil {
				l.SetRTT(*f.RTT)
			}
			return nil
		},
		heal: func(context.Context) error {
			l.SetRate(link.Up, int64(was.Up))
			l.SetRate(link.Down, int64(was.Down))
			l.SetRTT(was.RTT)
			return nil
		},
	}
}

// vanish takes the power of a machine: nobody is told that its connections are gone.
func (c *column) vanish(node string) *deed {
	links := []*link.Pool{c.Site.Link(c.Pool)}
	if lan := c.Site.LAN(c.Pool); lan != nil {
		links = append(links, lan)
	}
	ids := []runtime.PartID{runtime.ContainersOf(node)}
	if c.mode == runtime.Weir {
		ids = append(ids, runtime.HubOf(node))
	}
	ids = append(ids, runtime.KubeletOf(node))
	return &deed{
		dead: []string{node},
		begin: func(context.Context) error {
			for _, l := range links {
				l.Cut(link.Both, node)
			}
			var all error
			for _, id := range ids {
				all = errors.Join(all, c.kill(id))
			}
			return all
		},
		heal: func(ctx context.Context) error {
			for _, l := range links {
				l.Heal(link.Both, node)
			}
			for _, id := range ids {
				if err := runtime.Start(ctx, c.Site, id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// findKill kills a part, and starts it again.
func (c *column) findKill(ctx context.Context, f scenario.Fault) (*deed, error) {
	d := &deed{}
	var id runtime.PartID
	hub, isHub := f.Target.Hub()
	kubelet, isKubelet := f.Target.Kubelet()
	switch {
	case isKubelet:
		node := c.history.Nodes[kubelet-1]
		id, d.dead = runtime.KubeletOf(node), []string{node}
	case f.Target == scenario.APIServer:
		id, d.cloud = runtime.APIServer, true
	case c.mode != runtime.Weir:
		return nil, nil
	case isHub:
		id = runtime.HubOf(c.history.Nodes[hub-1])
	case f.Target == scenario.Leader:
		leader, err := c.leader(ctx)
		if err != nil {
			return nil, err
		}
		id = runtime.HubOf(leader)
	default:
		id = c.coordinators()[0]
	}
	d.begin = func(context.Context) error { return c.kill(id) }
	d.heal = func(ctx context.Context) error { return runtime.Start(ctx, c.Site, id) }
	return d, nil
}

// kill ends a part unless it has ended already.
func (c *column) kill(id runtime.PartID) error {
	p, err := c.Site.Part(id)
	if err != nil || !p.Running() {
		return err
	}
	return p.Kill()
}
