package autonomy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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
	readyPatience = 3 * time.Minute // until nodes and pods are ready
	backPatience  = 3 * time.Minute // until pods run again
	lookEvery     = 100 * time.Millisecond
	quietTime     = 3 * time.Second // in which the store writes what it saw
)

// column is one of the two runs of a scenario.
type column struct {
	runner.Column

	s     *scenario.Scenario
	about *scenario.Autonomy
	mode  runtime.Mode
	weir  bool
	nodes []string

	machines map[string]runtime.Machine
	admin    kubernetes.Interface
	recorder *recorder
	disk     *diskMeter

	mu          sync.Mutex              // guards what follows
	kubelets    map[string]*rest.Config // how those of each node reach the API server
	cut         map[string]int          // by node: cuts that last
	deleted     map[string]bool         // pods that the cloud deleted
	finished    map[string]bool         // jobs that were let finish
	healed      time.Time               // the last cut
	restarts    int
	back        time.Duration
	firstAnswer time.Duration
	agreed      time.Duration
	apart, left int // pods of which cloud and machine do not say the same; deleted ones that are there
	writes      scribes
	before      map[string]int // collections that hubs can serve without the cloud, when the faults begin
	joined      int
	storeBytes  int64
	attempts    attempts
	led         *led // nil: there are no Services

	downSeries []link.Sample
}

func newColumn(s *scenario.Scenario, o runner.Options, w *timeline.Writer, mode runtime.Mode) *column {
	c := &column{
		Column: runner.Column{Options: o, Way: report.WayWeir, Pool: s.Topology.Pool.Name, Time: w, Every: lookEvery},
		s:      s, about: s.Study.(*scenario.Autonomy), mode: mode, weir: mode != runtime.Stock,
		nodes: s.Topology.Pool.NodeNames(), machines: map[string]runtime.Machine{},
		kubelets: map[string]*rest.Config{}, cut: map[string]int{},
		deleted: map[string]bool{}, finished: map[string]bool{},
	}
	if !c.weir {
		c.Way = report.WayStock
	}
	if n := c.about.Services; n > 0 {
		c.led = newLed(n, c.nodes, c.about.PodsPerNode, c.dnsPods())
	}
	return c
}

// run brings up the column's site and runs it to its end.
func (c *column) run(ctx context.Context) (err error) {
	if err = c.Up(ctx, layout.Autonomy(c.s, c.about, c.mode)); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.Down(ctx))
	}()
	hollow, ok := c.Site.(runtime.Machines)
	if !ok {
		return fmt.Errorf("runtime %s has no hollow nodes: use --runtime local", c.Runtime.Name())
	}
	for _, n := range c.nodes {
		if c.machines[n], err = hollow.Machine(n); err != nil {
			return err
		}
		c.kubelets[n] = c.machines[n].Kubelet
	}
	if c.admin, err = workload.NewClient(c.Site.Admin()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	c.disk = &diskMeter{column: c, now: map[string]disk{}, complete: map[string]int{}}
	var background sync.WaitGroup
	defer func() {
		cancel()
		background.Wait()
		if c.recorder != nil {
			c.recorder.wait()
		}
	}()
	if c.recorder, err = record(ctx, c.admin); err != nil {
		return err
	}
	background.Go(func() { c.disk.run(ctx) })
	defer c.writes.stop()
	defer c.led.stop(c)
	for _, step := range []struct {
		phase string
		do    func(context.Context) error
	}{{"start", c.start}, {"fill", c.fill}, {"faults", c.faults}, {"settle", c.settle}} {
		c.Phase(step.phase)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.phase, err)
		}
	}
	c.Measure()
	for _, x := range c.Site.Link(c.Pool).Series(time.Second) {
		if x.Dir == link.Down {
			c.downSeries = append(c.downSeries, x)
		}
	}
	return nil
}

// start starts everything. With firstBoot Weir's pool starts while the link is cut, and stays cut until a fault heals
// that.
func (c *column) start(ctx context.Context) error {
	if err := prepare(ctx, c.admin); err != nil {
		return err
	}
	first, kubelets := c.Parts()
	first = slices.DeleteFunc(first, func(id runtime.PartID) bool { return id.Kind() == "proxy" }) // its Node is not there
	offline := c.weir && c.about.FirstBoot
	if offline {
		line{c.Site.Link(c.Pool), c}.Cut(link.Both, "")
	}
	if err := runtime.Start(ctx, c.Site, first...); err != nil {
		return err
	}
	if err := runtime.Start(ctx, c.Site, kubelets...); err != nil || offline {
		return err
	}
	if err := c.waitNodes(ctx); err != nil {
		return err
	}
	return c.startProxies(ctx)
}

// kubelet is how the kubelet of a node reaches the API server.
func (c *column) kubelet(node string) *rest.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kubelets[node]
}

func (c *column) waitNodes(ctx context.Context) error {
	return c.Until(ctx, readyPatience, func() (bool, string) {
		n := c.readyNodes(ctx)
		return n == len(c.nodes), fmt.Sprintf("waiting for nodes to be Ready: %d of %d are", n, len(c.nodes))
	})
}

func (c *column) readyNodes(ctx context.Context) (n int) {
	list, err := c.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
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

// fill gives all nodes their pods and waits until they run, in the cloud's eyes too.
func (c *column) fill(ctx context.Context) error {
	if err := c.led.create(ctx, c.admin); err != nil {
		return err
	}
	for _, n := range c.nodes {
		for _, name := range podNames(n, c.about.PodsPerNode) {
			if err := createPod(ctx, c.admin, n, name, c.led.of(name)); err != nil {
				return err
			}
		}
	}
	if err := c.createDNS(ctx); err != nil {
		return err
	}
	if c.weir && c.about.FirstBoot {
		return nil // they cannot know of them yet
	}
	if err := c.Until(ctx, readyPatience, func() (bool, string) {
		n, all := c.agreeing(ctx)
		return n == all, fmt.Sprintf("waiting for pods to run: %d of %d do", n, all)
	}); err != nil {
		return err
	}
	if c.weir {
		if err := c.attempts.prepare(ctx, c); err != nil {
			return err
		}
	}
	if err := c.led.begin(ctx, c); err != nil {
		return err
	}
	runner.Slept(ctx, quietTime)
	c.before = c.disk.collections()
	return ctx.Err()
}

// agreeing counts the pods of which cloud and machine say the same.
func (c *column) agreeing(ctx context.Context) (n, all int) {
	c.mu.Lock()
	deleted := make(map[string]bool, len(c.deleted))
	for name := range c.deleted {
		deleted[name] = true
	}
	c.mu.Unlock()
	left := 0
	for _, node := range c.nodes {
		on, err := containers(ctx, c.machines[node])
		truth := latest(on)
		for _, name := range c.podsOf(node) {
			p := c.recorder.pod(name)
			if deleted[name] {
				if x, there := truth[name]; p != nil || there && x.State == runningState {
					left++
				}
				continue
			}
			all++
			if err == nil && agree(p, truth[name], c.done(name)) {
				n++
			}
		}
	}
	c.mu.Lock()
	c.left = left
	c.mu.Unlock()
	return n, all
}

func (c *column) isDeleted(pod string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deleted[pod]
}

func (c *column) done(pod string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished[pod]
}

// agree reports whether a cloud's pod says what its newest container is.
func agree(p *corev1.Pod, x container, finished bool) bool {
	if p == nil || len(p.Status.ContainerStatuses) != 1 {
		return false
	}
	s := p.Status.ContainerStatuses[0]
	if finished {
		// it did not run again.
		return p.Status.Phase == corev1.PodSucceeded && s.State.Terminated != nil && x.State != runningState
	}
	// A machine that lost its power counts attempts again; its kubelet never counts restarts back (kubelet_pods.go,
	// convertToAPIContainerStatuses). So the attempt alone may be that of before: only the time of its start says that it
	// is this container.
	return x.State == runningState && p.Status.Phase == corev1.PodRunning && s.State.Running != nil &&
		s.RestartCount >= x.Attempt && strings.HasSuffix(s.ContainerID, fmt.Sprintf("_%d", x.Attempt)) &&
		s.State.Running.StartedAt.Unix() == time.Unix(0, x.StartedAt).Unix()
}

// settle waits until cloud and nodes agree, and counts what does not.
func (c *column) settle(ctx context.Context) error {
	c.writes.stop()
	if c.weir && c.about.FirstBoot {
		if err := c.waitNodes(ctx); err != nil {
			c.Note(err.Error())
		}
	}
	began, all := time.Now(), 0
	err := c.Until(ctx, c.about.Settle, func() (bool, string) {
		var n int
		n, all = c.agreeing(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.apart = all - n
		if c.apart+c.left > 0 {
			return false, fmt.Sprintf("waiting for cloud and nodes to agree: %d of %d pods, %d deleted ones are there", n, all,
				c.left)
		}
		if ok, what := c.allWritten(ctx); !ok {
			return ok, what
		}
		if ok, what := c.led.settled(); !ok {
			return ok, what
		}
		return c.refetched() >= 1 || !c.s.Tears(), "waiting for what was damaged to be fetched again"
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // the metrics say so
		c.Note(err.Error())
		c.allWritten(ctx)
		for _, line := range append(c.disagreements(ctx), c.writes.lines...) {
			c.Note(line)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	from := began
	if !c.healed.IsZero() {
		from = c.healed
	}
	c.agreed = time.Since(from)
	c.joined = c.readyNodes(ctx)
	for _, n := range c.nodes {
		c.storeBytes = max(c.storeBytes, folderSize(filepath.Join(c.machines[n].HubData, "store")))
	}
	return nil
}

// refetched is the least share that a hub has of the collections that it had before the faults.
func (c *column) refetched() float64 {
	share, now := 1.0, c.disk.collections()
	for node, n := range c.before {
		if n > 0 {
			share = min(share, float64(now[node])/float64(n))
		}
	}
	return share
}

// disagreements tell of which pods cloud and machine say different things.
func (c *column) disagreements(ctx context.Context) (lines []string) {
	for _, node := range c.nodes {
		on, _ := containers(ctx, c.machines[node])
		truth := latest(on)
		for _, name := range c.podsOf(node) {
			p, x := c.recorder.pod(name), truth[name]
			if agree(p, x, c.done(name)) {
				continue
			}
			says := "nothing"
			if p != nil {
				says = string(p.Status.Phase)
				if len(p.Status.ContainerStatuses) == 1 {
					says += fmt.Sprintf(", %d restarts", p.Status.ContainerStatuses[0].RestartCount)
				}
			}
			lines = append(lines, fmt.Sprintf("%s: the cloud says %s, the machine %s, attempt %d", name, says,
				strings.ToLower(x.State), x.Attempt))
		}
	}
	return lines
}

func folderSize(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if i, err := e.Info(); err == nil {
				sum += i.Size()
			}
		}
		return nil
	})
	return sum
}
