package pulls

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// repeated lets a fault happen at its time, as often as it says, and heals it each time.
func (c *column) repeated(ctx context.Context, began time.Time, f scenario.Fault) error {
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
}

// inject does a fault once and heals it.
func (c *column) inject(ctx context.Context, f scenario.Fault) error {
	node := ""
	switch n, hub := f.Target.Hub(); {
	case hub:
		node = c.nodes[n-1]
	case f.Target == scenario.Puller:
		if node = c.puller(); node == "" {
			return fmt.Errorf("no node pulls")
		}
	}
	c.Note(fmt.Sprintf("%s (%s)", f, node))
	defer func() { c.Note("healed: " + f.String()) }()
	switch f.Action {
	case scenario.Cut:
		return c.cut(ctx, f, node)
	case scenario.Slow:
		return c.slow(ctx, f)
	}
	return c.bounce(ctx, f, node)
}

// puller is the node that has pulled most over the uplink, of those that have not all. "": none pulls.
func (c *column) puller() (node string) {
	most := int64(0)
	for _, n := range c.nodes {
		c.mu.Lock()
		_, done := c.o.got[n]
		c.mu.Unlock()
		if crossed := c.crossed(n); !done && crossed > most {
			node, most = n, crossed
		}
	}
	return node
}

// cut cuts the link of a node, or with "" of all.
func (c *column) cut(ctx context.Context, f scenario.Fault, node string) error {
	l, from := c.Site.Link(c.Pool), time.Now()
	i := c.begin(node, from)
	l.Cut(f.Direction, node)
	runner.Slept(ctx, f.For)
	l.Heal(f.Direction, node)
	c.end(node, i)
	return ctx.Err()
}

// begin notes that a node, or with "" the pool, is away from now on, and end that it is back.
func (c *column) begin(node string, from time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if node == "" {
		c.o.cuts = append(c.o.cuts, span{from: from})
		return len(c.o.cuts) - 1
	}
	c.o.away[node] = append(c.o.away[node], span{from: from})
	return len(c.o.away[node]) - 1
}

func (c *column) end(node string, i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if node == "" {
		c.o.cuts[i].to = time.Now()
	} else {
		c.o.away[node][i].to = time.Now()
	}
}

// slow gives the link another rate or round trip for a while.
func (c *column) slow(ctx context.Context, f scenario.Fault) error {
	l, u := c.Site.Link(c.Pool), c.s.Topology.Pool.Uplink
	if f.Rate != nil {
		l.SetRate(link.Both, int64(*f.Rate))
	}
	if f.RTT != nil {
		l.SetRTT(*f.RTT)
	}
	runner.Slept(ctx, f.For)
	l.SetRate(link.Up, int64(u.Up))
	l.SetRate(link.Down, int64(u.Down))
	l.SetRTT(u.RTT)
	return ctx.Err()
}

// parts are what a fault ends, in the order in which it is started again: of a puller its containerd, of a hub the hub,
// of a machine that vanishes all of it.
func (c *column) parts(f scenario.Fault, node string) (ids []runtime.PartID) {
	weir := c.mode != runtime.Stock
	switch {
	case f.Action == scenario.Vanish && weir:
		return []runtime.PartID{
			runtime.ContainersOf(node), runtime.HubOf(node), runtime.ContainerdOf(node), runtime.KubeletOf(node),
		}
	case f.Action == scenario.Vanish:
		return []runtime.PartID{runtime.ContainersOf(node), runtime.ContainerdOf(node), runtime.KubeletOf(node)}
	case f.Target == scenario.Puller:
		return []runtime.PartID{runtime.ContainerdOf(node)}
	case !weir: // it is Weir's only
		return nil
	case f.Target == scenario.Coordinator:
		return c.s.WeirPool().CoordinatorIDs()[:1]
	}
	return []runtime.PartID{runtime.HubOf(node)}
}

// bounce kills parts, and starts them again.
func (c *column) bounce(ctx context.Context, f scenario.Fault, node string) error {
	ids := c.parts(f, node)
	if f.Action == scenario.Vanish {
		i := c.begin(node, time.Now())
		defer func() { c.end(node, i) }()
	}
	for _, id := range ids {
		p, err := c.Site.Part(id)
		if err != nil {
			return err
		}
		if err := p.Kill(); err != nil {
			return err
		}
	}
	if !runner.Slept(ctx, f.For) {
		return ctx.Err()
	}
	for _, id := range ids {
		p, err := c.Site.Part(id)
		if err != nil {
			return err
		}
		if err := p.Start(ctx); err != nil {
			return err
		}
		if id.Kind() == "containerd" {
			c.mu.Lock()
			c.starts[node]++
			c.mu.Unlock()
		}
	}
	return nil
}
