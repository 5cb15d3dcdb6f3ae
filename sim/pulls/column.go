package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
	"github.com/weir-edge/weir/sim/workload"
)

const (
	readyPatience = 10 * time.Minute // until nodes are ready: twenty share a thin link
	lookEvery     = 200 * time.Millisecond
)

// column is one of the two runs of a scenario.
type column struct {
	runner.Column

	s     *scenario.Scenario
	about *scenario.Images
	mode  runtime.Mode
	nodes []string
	image string
	pulls runtime.Pulls
	beats *beats
	marks *marks

	mu     sync.Mutex // guards what follows
	o      outcome
	starts map[string]int // of each node: how often its containerd was started again
}

func newColumn(s *scenario.Scenario, o runner.Options, w *timeline.Writer, mode runtime.Mode) *column {
	about := s.Study.(*scenario.Images)
	c := &column{
		Column: runner.Column{Options: o, Way: report.WayWeir, Pool: s.Topology.Pool.Name, Time: w, Every: lookEvery},
		s:      s, about: about, mode: mode, nodes: s.Topology.Pool.NodeNames(), image: layout.Image(s, about).Name,
		o: outcome{
			got: map[string]time.Time{}, away: map[string][]span{}, lease: cloud.StockTimers().Lease,
		},
		starts: map[string]int{},
	}
	if mode == runtime.Stock {
		c.Way = report.WayStock
	}
	return c
}

// run brings up the column's site and runs it to its end.
func (c *column) run(ctx context.Context) (err error) {
	if err := c.Up(ctx, layout.Images(c.s, c.about, c.mode)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Down(ctx)) }()
	var has bool
	if c.pulls, has = c.Site.(runtime.Pulls); !has {
		return fmt.Errorf("runtime %s has no registry: use --runtime local", c.Runtime.Name())
	}
	if c.o.pulled, err = c.pulls.Pulled(c.image); err != nil {
		return err
	}
	admin, err := workload.NewClient(c.Site.Admin())
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		if c.beats != nil {
			c.beats.wait()
		}
		c.marks.wait()
	}()
	if c.beats, err = listen(watching, admin); err != nil {
		return err
	}
	c.Phase("start")
	first, kubelets := c.Parts()
	if err := runtime.Start(ctx, c.Site, append(first, kubelets...)...); err != nil {
		return err
	}
	if err := c.Until(ctx, readyPatience, func() (bool, string) {
		n := ready(ctx, admin)
		return n == len(c.nodes), fmt.Sprintf("waiting for nodes to be Ready: %d of %d are", n, len(c.nodes))
	}); err != nil {
		return err
	}
	if c.marks, err = c.look(watching, admin); err != nil {
		return err
	}
	c.Phase("pull")
	if err = c.play(ctx); err == nil {
		err = c.settle(ctx)
	}
	c.Measure()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.o.ended, c.o.beats, c.o.crossed = time.Now(), c.beats.of(c.nodes), c.crossed("")
	c.o.written, c.o.seen = c.marks.of(c.nodes)
	return err
}

// ready counts the nodes that are.
func ready(ctx context.Context, admin kubernetes.Interface) (n int) {
	list, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	for _, x := range list.Items {
		if slices.ContainsFunc(x.Status.Conditions, func(k corev1.NodeCondition) bool {
			return k.Type == corev1.NodeReady && k.Status == corev1.ConditionTrue
		}) {
			n++
		}
	}
	return n
}

// play lets nodes pull and faults happen, until each node has the image or is given up, and all faults are healed.
func (c *column) play(ctx context.Context) error {
	began := time.Now()
	last := time.Duration(0)
	for _, p := range c.about.Pulls {
		c.o.nodes += len(p.Nodes)
		last = max(last, p.At)
	}
	c.o.began = began.Add(c.first())
	within, giveUp := context.WithDeadline(ctx, began.Add(last+c.about.Within))
	defer giveUp()
	var telling sync.WaitGroup
	defer telling.Wait()
	ends, over := context.WithCancel(ctx)
	defer over()
	telling.Go(func() { c.tell(ends) })
	g, faults := errgroup.WithContext(ctx)
	var marking errgroup.Group
	marking.Go(func() error { return c.marks.write(ends) })
	for _, f := range c.s.Faults {
		g.Go(func() error { return c.repeated(faults, began, f) })
	}
	for _, p := range c.about.Pulls {
		for _, n := range p.Nodes {
			g.Go(func() error {
				if runner.Slept(within, time.Until(began.Add(p.At))) {
					c.kubelet(within, c.nodes[n-1])
				}
				return ctx.Err()
			})
		}
	}
	err := g.Wait()
	over()
	return errors.Join(err, marking.Wait())
}

// first is when the first pull begins.
func (c *column) first() time.Duration {
	at := c.about.Pulls[0].At
	for _, p := range c.about.Pulls {
		at = min(at, p.At)
	}
	return at
}

// tell says now and then how far the pulls are.
func (c *column) tell(ctx context.Context) {
	const often = 5 * time.Second
	for runner.Slept(ctx, often) {
		c.mu.Lock()
		n := len(c.o.got)
		c.mu.Unlock()
		c.Progress(fmt.Sprintf("%s column: %d of %d nodes have the image; %.2f of one pull crossed the uplink", c.Way, n,
			c.o.nodes, float64(c.crossed(""))/float64(c.o.pulled)))
	}
}

// crossed are the bytes of class image over the uplink, both ways: of a node, or with "" of all.
func (c *column) crossed(node string) int64 {
	return link.Sum(c.Site.Link(c.Pool).Counters(), func(x link.Counter) bool {
		return x.Class == runtime.ClassImage && (node == "" || x.Node == node)
	})
}

// outcome is what came of the column.
func (c *column) outcome() outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.o
}
