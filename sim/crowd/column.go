package crowd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/workload"
)

const (
	look     = time.Second
	patience = 10 * time.Minute
	atOnce   = 5                // pools that are started side by side
	rest     = 90 * time.Second // before each count: what a start leaves idle ends within a minute
	readings = 7                // that have to agree, a look apart: watches end now and then, and begin again
)

// column is one run.
type column struct {
	runner.Column
	s     *scenario.Scenario
	about *scenario.Crowd
	mode  runtime.Mode

	admin   kubernetes.Interface
	streams []*client.Stream
	counts  [3]count // with no node, with the first of each pool, with all that run
}

func (c *column) run(ctx context.Context) (err error) {
	topology := layout.Crowd(c.s, c.about, c.mode)
	if err := c.Up(ctx, topology); err != nil {
		return err
	}
	defer func() {
		if e := c.Down(ctx); err == nil {
			err = e
		}
	}()
	watching, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	if c.admin, err = workload.NewClient(c.Site.Admin()); err != nil {
		return err
	}
	w := workload.New(workload.Config{
		Seed: c.s.Seed, Services: c.s.Workload.Services, Endpoints: c.s.Workload.Endpoints,
		Nodes: topology.Pools[0].NodeNames(),
	})
	if err := w.Fill(ctx, c.admin, func(int, int) {}); err != nil {
		return err
	}
	if c.counts[0], err = c.settled(ctx, topology); err != nil {
		return err
	}
	if topology.Manager {
		if err := runtime.Start(ctx, c.Site, runtime.Manager); err != nil {
			return err
		}
		if err := c.Until(ctx, patience, func() (bool, string) { return c.told(ctx, topology) }); err != nil {
			return err
		}
		background.Go(func() { c.keepManager(watching) })
	}
	for stage, some := range []struct {
		pools    []runtime.Pool
		from, to int
	}{{topology.Pools, 0, 1}, {topology.Pools[:c.about.Follow], 1, c.about.Run}} {
		for batch := range slices.Chunk(some.pools, atOnce) {
			if err := c.startNodes(ctx, watching, &background, batch, some.from, some.to); err != nil {
				return err
			}
			c.Progress(fmt.Sprintf("%s column: nodes %d to %d of the pools up to %s", c.Way, some.from+1, some.to,
				batch[len(batch)-1].Name))
		}
		if !runner.Slept(ctx, rest) {
			return ctx.Err()
		}
		if c.counts[stage+1], err = c.settled(ctx, topology); err != nil {
			return err
		}
		open := c.counts[stage+1]
		c.Note(fmt.Sprintf("node %d to %d of %d pools: %.0f watches and %.0f connections (%v), %.0f watches before",
			some.from+1, some.to, len(some.pools),
			open.watches, open.connections, open.classes, c.counts[0].watches))
	}
	return nil
}

// startNodes starts some nodes of some pools, their coordinators with the first, and clients on them, and waits until
// all have their state.
func (c *column) startNodes(ctx, watching context.Context, background *sync.WaitGroup, pools []runtime.Pool, from,
	to int) error {
	var ids []runtime.PartID
	var nodes []string
	for _, p := range pools {
		names := p.NodeNames()[from:to]
		nodes = append(nodes, names...)
		if c.mode == runtime.Stock {
			continue
		}
		if from == 0 {
			ids = append(ids, p.CoordinatorIDs()...)
		}
		for _, n := range names {
			ids = append(ids, runtime.HubOf(n))
		}
	}
	if err := runtime.Start(ctx, c.Site, ids...); err != nil {
		return err
	}
	if err := c.Until(ctx, patience, func() (bool, string) { return c.ready(ctx, ids) }); err != nil {
		return err
	}
	first := len(c.streams)
	for _, n := range nodes {
		for _, kind := range c.s.Clients {
			e, err := c.Site.Endpoint(n, runtime.ClassPool)
			if err != nil {
				return err
			}
			token, err := c.Site.Token(ctx, kind.Identity())
			if err != nil {
				return err
			}
			opened, err := client.Open(watching, e.RESTConfig(token), client.Specs(string(kind))...)
			if err != nil {
				return fmt.Errorf("client %s on %s: %w", kind, n, err)
			}
			for _, s := range opened {
				background.Go(s.Wait)
			}
			c.streams = append(c.streams, opened...)
		}
	}
	return c.Until(ctx, patience, func() (bool, string) {
		left := 0
		for _, s := range c.streams[first:] {
			if !s.Recording.Synced() {
				left++
			}
		}
		return left == 0, fmt.Sprintf("waiting for the state of %d streams", left)
	})
}

// told reports whether weir-manager has told all pools what they are: to begin with so many at once is work for
// minutes, and hubs would wait in it for their certificates.
func (c *column) told(ctx context.Context, t runtime.Topology) (bool, string) {
	all, err := c.admin.CoreV1().Endpoints(contract.ManagerNamespace).List(ctx,
		metav1.ListOptions{LabelSelector: contract.NodePoolLabel})
	if err != nil {
		return false, err.Error()
	}
	return len(all.Items) >= len(t.Pools),
		fmt.Sprintf("waiting for weir-manager to tell the pools: %d of %d", len(all.Items), len(t.Pools))
}

// keepManager starts weir-manager again when it has ended, as its Deployment does: it ends when it cannot renew its
// Lease.
func (c *column) keepManager(ctx context.Context) {
	m, err := c.Site.Part(runtime.Manager)
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-m.Done():
		}
		if ctx.Err() != nil || !runner.Slept(ctx, look) {
			return
		}
		c.Note("weir-manager has ended, and is started again")
		err = m.Start(ctx)
	}
	if ctx.Err() == nil {
		c.Note("weir-manager does not start: " + err.Error())
	}
}

// ready reports whether parts answer, and hubs lead or follow. What nobody reads yet is in no cache.
func (c *column) ready(ctx context.Context, ids []runtime.PartID) (bool, string) {
	for _, id := range ids {
		var s struct {
			Role   string `json:"role"`
			Source string `json:"source"`
		}
		p, err := c.Site.Part(id)
		if err == nil {
			err = p.Status(ctx, &s)
		}
		if err != nil {
			return false, fmt.Sprintf("waiting for %s to answer (%v)", id, err)
		}
		if source := map[string]string{"Leader": "cloud", "Follower": "coordinator"}[s.Role]; id.Kind() == "hub" &&
			c.mode == runtime.Weir && (source == "" || s.Source != source) {
			return false, fmt.Sprintf("waiting for %s to lead or follow: it is %s of %s", id, s.Role, s.Source)
		}
	}
	return true, ""
}

// settled counts what is open when that does not change any more. A watch that ends is opened again at once, so
// readings differ by some.
func (c *column) settled(ctx context.Context, t runtime.Topology) (count, error) {
	var seen []count
	err := c.Until(ctx, patience, func() (bool, string) {
		now, err := c.open(ctx, t)
		if err != nil {
			return false, err.Error()
		}
		seen = append(seen, now)
		if len(seen) < readings {
			return false, "counting"
		}
		last := seen[len(seen)-readings:]
		least, most := last[0].watches, last[0].watches
		for _, x := range last {
			least, most = min(least, x.watches), max(most, x.watches)
		}
		return most-least <= 1+most/100, fmt.Sprintf("waiting for watches to settle: %.0f to %.0f", least, most)
	})
	if err != nil {
		return count{}, err
	}
	last := slices.Clone(seen[len(seen)-readings:])
	slices.SortFunc(last, func(a, b count) int { return int(a.watches - b.watches) })
	return last[len(last)/2], nil
}

// open counts what is open now.
func (c *column) open(ctx context.Context, t runtime.Topology) (now count, err error) {
	if now.watches, err = runner.OpenWatches(ctx, c.admin); err != nil {
		return now, err
	}
	now.classes = map[string]float64{}
	for _, p := range t.Pools {
		for _, x := range c.Site.Link(p.Name).Connections() {
			if x.Closed.IsZero() {
				now.connections++
				now.classes[x.Class]++
			}
		}
	}
	return now, nil
}
