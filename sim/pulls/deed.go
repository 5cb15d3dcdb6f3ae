package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// A column is the laboratory of its faults.
var _ scenario.Lab = (*column)(nil)

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
	at := &scenario.Aim{Fault: f, Pool: c.s.Topology.Pool, Seed: c.s.Seed}
	if err := f.Kind.Aim(ctx, c, at); err != nil {
		return err
	}
	c.Note(fmt.Sprintf("%s (%s)", f, at.Node))
	defer func() { c.Note("healed: " + f.String()) }()
	if at.Stops || at.Ends && at.Nodes != nil { // a link is cut, or the machine vanishes
		i := c.begin(at.Node, time.Now())
		defer func() { c.end(at.Node, i) }()
	}
	going, err := f.Kind.Begin(ctx, c, at)
	if err != nil {
		return err
	}
	if !runner.Slept(ctx, f.For) && at.Ends {
		return ctx.Err()
	}
	return errors.Join(going.Heal(ctx), ctx.Err())
}

// Find implements scenario.Lab.
func (c *column) Find(_ context.Context, at *scenario.Aim) error {
	switch n, hub := at.Fault.Target.Hub(); {
	case hub:
		at.Node = c.nodes[n-1]
		at.Part = string(runtime.HubOf(at.Node))
	case at.Fault.Target == scenario.Puller:
		if at.Node = c.puller(); at.Node == "" {
			return errors.New("no node pulls")
		}
		at.Part = string(runtime.ContainerdOf(at.Node))
	case at.Fault.Target == scenario.Coordinator:
		at.Part = string(layout.WeirPool(c.s).CoordinatorIDs()[0])
	}
	return nil
}

// Lines implements scenario.Lab: the links of a machine that vanishes stay.
func (c *column) Lines(p scenario.Pool, name scenario.LinkName) []scenario.Line {
	if name == "" {
		return nil
	}
	return c.Column.Lines(p, name)
}

// Part implements scenario.Lab. What is Weir's only is nothing in the stock column.
func (c *column) Part(at *scenario.Aim) (scenario.Part, error) {
	id := runtime.PartID(at.Part)
	if id.Kind() != "containerd" && c.mode == runtime.Stock {
		return c.machine(at), nil
	}
	return c.machine(at, id), nil
}

// Machine implements scenario.Lab.
func (c *column) Machine(at *scenario.Aim) (scenario.Part, error) {
	ids := []runtime.PartID{runtime.ContainersOf(at.Node)}
	if c.mode != runtime.Stock {
		ids = append(ids, runtime.HubOf(at.Node))
	}
	return c.machine(at, append(ids, runtime.ContainerdOf(at.Node), runtime.KubeletOf(at.Node))...), nil
}

// machine counts how often its containerd is started.
type machine struct {
	runner.Bundle

	c    *column
	node string
}

func (c *column) machine(at *scenario.Aim, ids ...runtime.PartID) machine {
	return machine{runner.Bundle{Site: c.Site, IDs: ids}, c, at.Node}
}

func (m machine) Start(ctx context.Context) error {
	if err := m.Bundle.Start(ctx); err != nil {
		return err
	}
	if slices.Contains(m.IDs, runtime.ContainerdOf(m.node)) {
		m.c.mu.Lock()
		defer m.c.mu.Unlock()
		m.c.starts[m.node]++
	}
	return nil
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
